"""The command, called in this process."""

import sys

import pytest

from heatcheck.cli.main import main


@pytest.fixture
def heatcheck(monkeypatch, capsys):
    """A function that runs the command in this process and returns its exit code, stdout and stderr."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["heatcheck", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as exit_:
            code = exit_.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
