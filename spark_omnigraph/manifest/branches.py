"""Branches as stored rows and Lance have them: a checked name, and None for main."""

from __future__ import annotations

from typing import NewType, TypeAlias

MAIN = "main"
BranchName = NewType("BranchName", str)
"""Name of a branch other than main that was looked at: `parse_branch` makes it of what users give, whoever reads rows,
sidecars and references of what is stored.
"""
Branch: TypeAlias = BranchName | None


def stored_branch(name: str | None) -> Branch:
    """A branch as it is stored or listed: null is main, and so is `main` spelt out, which the format allows."""
    return None if name is None or name == MAIN else BranchName(name)


def display(branch: Branch) -> str:
    """Name of a branch for people and reports."""
    return MAIN if branch is None else branch
