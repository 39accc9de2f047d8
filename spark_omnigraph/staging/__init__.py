"""Rows → staged files and a receipt, on an executor; nothing becomes visible."""
