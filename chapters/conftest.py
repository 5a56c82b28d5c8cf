"""The notebooks: compared with what the book recorded, executed where it did not."""

from playback import pytest_collect_file, pytest_report_header

__all__ = ["pytest_collect_file", "pytest_report_header"]
