"""What the tests of wrong files share; the fixture ``assert_refused`` checks their cases."""

import pytest


class Cases(list):
    """The cases of one test module."""

    def case(self, kind, message, names=None):
        """Registers a function that fills a folder and returns what must fail."""

        def register(build):
            self.append(pytest.param(build, kind, message, names, id=build.__name__))
            return build

        return register


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)
