"""Lance's handles by the names that other rooms use; they hold them and hand them back, and call nothing on them."""

from __future__ import annotations

from typing import TypeAlias

import lance

Dataset: TypeAlias = lance.LanceDataset
"""A dataset of the graph at one version."""

PreparedTransaction: TypeAlias = lance.Transaction
"""A change that is ready to land; its uuid is known."""
