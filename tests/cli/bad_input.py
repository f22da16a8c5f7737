"""What the tests of bad input share; the fixture ``assert_refused`` checks their commands."""

import pytest


class Cases(list):
    """The cases of one test module: what makes a command, what it says, its exit code."""

    def case(self, says, code=1):
        """Registers a function that fills a folder and gives the words of a command that fails."""

        def register(build):
            self.append(pytest.param(build, says, code, id=build.__name__))
            return build

        return register

    def plain(self, name, line, says, code=1):
        """A command that needs no files."""
        self.append(pytest.param(lambda *folders: line.split(), says, code, id=name))
