"""The registry, the settings and the page of all studies, and what they measure with."""

import dataclasses

import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.lab import STUDIES, Finding, Outcome, Study, find_study, perform, read_settings
from nlsf.lab.study import at_least, gallery_page, setting, with_coefficients, write_gallery
from nlsf.report.charts import BarChart
from nlsf.spectral import IndexBands, Lens, laplacian, partial_eigh
from nlsf.testing.graphs import torus


@dataclasses.dataclass(frozen=True)
class Small:
    size: int = setting(3, "how large it is")
    rates: tuple[float, ...] = setting((0.5, 2.0), "which rates")


def small_study(holds=True):
    def run(settings):
        chart = BarChart("Sizes", "One bar.", "", "size", ["a"], [("s", [settings.size])])
        return Finding({"size": settings.size}, [chart], f"The size is {settings.size}.", holds)

    return Study("small", "A small <study>", "Sizes are sizes.", Small, run)


def test_every_study_is_documented():
    for name, study in STUDIES.items():
        assert study.name == name
        assert study.claim.endswith(".")
        assert "(" in study.claim, "say where in the paper"
        for field in dataclasses.fields(study.settings):
            assert field.metadata["text"], f"{name}.{field.name} is not documented"
        assert study.settings() == study.settings()


def test_an_unknown_study_names_the_nearest():
    assert find_study("activations").title
    with pytest.raises(ConfigError, match=r"no study 'activation'. Did you mean 'activations'"):
        find_study("activation")


def test_settings_come_from_texts():
    assert read_settings(small_study(), ["size=7", "rates=[1, 2]"]) == Small(7, (1.0, 2.0))
    assert read_settings(small_study()) == Small()
    with pytest.raises(ConfigError, match=r"no key 'sizes'. Did you mean 'size'"):
        read_settings(small_study(), ["sizes=7"])
    with pytest.raises(ConfigError, match="size must be a whole number"):
        read_settings(small_study(), ["size=many"])
    with pytest.raises(ConfigError, match="size must be at least 1, not 0"):
        at_least(1, size=0)


def test_a_study_is_performed_and_timed():
    outcome = perform(small_study(), Small(5))
    assert outcome.finding.data == {"size": 5}
    assert outcome.settings == Small(5)
    assert outcome.seconds >= 0
    assert perform(small_study()).settings == Small()


def test_a_page_says_claim_conclusion_settings_and_time(tmp_path):
    first = Outcome(small_study(), Small(), perform(small_study()).finding, 1.5)
    second = Outcome(small_study(False), Small(4), perform(small_study(False)).finding, 0.5)
    text = write_gallery([first, second], tmp_path / "new" / "gallery.html").read_text()
    assert "2 claims of the paper, of which 1 held" in text
    assert "Not all claims held: A small &lt;study&gt;." in text
    assert "Every claim held." in gallery_page([first, first]).html()
    assert "Computed in 2.00 s." in text
    for said in ("Claim: Sizes are sizes.", "Found: The size is 3.", "how large it is", "0.5, 2"):
        assert said in text
    assert "A small &lt;study&gt;" in text
    assert "Overview" in text
    assert "Overview" not in gallery_page([first]).html()
    assert gallery_page([first]).subtitle.startswith("The claim held on what was sampled.")
    assert gallery_page([second]).subtitle.startswith("The claim did not hold")


def test_a_page_must_be_named_as_one(tmp_path):
    with pytest.raises(ConfigError, match=r"must end in \.html"):
        write_gallery([], tmp_path / "gallery.pdf")


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("normalize", [False, True])
def test_the_coefficients_are_those_that_are_wanted(p, normalize):
    P = Lens.of(partial_eigh(laplacian(torus(3, 4))), IndexBands(3))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 12, 2, dtype=torch.float64, generator=generator)
    wanted = torch.rand(5, 4, 2, dtype=torch.float64, generator=generator)
    y = with_coefficients(x, P, wanted, p=p, normalize=normalize)
    assert torch.allclose(P(y).norms(p=p, normalize=normalize), wanted)


def test_an_empty_band_stays_empty():
    spectrum = partial_eigh(laplacian(torus(3, 4)))
    P = Lens.of(spectrum, IndexBands(spectrum.num_eigenspaces))
    x = torch.ones(12, 1, dtype=torch.float64)
    y = with_coefficients(x, P, torch.zeros(P.n_bands, 1, dtype=torch.float64))
    assert torch.equal(y, torch.zeros_like(y))
