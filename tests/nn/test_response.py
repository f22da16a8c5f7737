import itertools

import pytest
import torch

from nlsf.errors import ModelError
from nlsf.nn import Response, Start
from nn.layers import randomised, signal

B, D, OUT = 4, 3, 2
FORMS = [
    *itertools.product(("diagonal", "bandwise"), ("shared", "channelwise", "mixing")),
    ("full", "mixing"),
]
CONSTANT = [("constant", "shared"), ("constant", "channelwise")]
STARTS = ["all-pass", "heat", "ppr", "high-pass", "walk", "random"]
every_form = pytest.mark.parametrize(("name", "sharing"), [*FORMS, *CONSTANT])
every_network = pytest.mark.parametrize(("name", "sharing"), FORMS)


def gains(start, shape=(B,)):
    return Start(start).gains(signal(*shape, seed=1).abs())


@every_form
@pytest.mark.parametrize("leading", [(), (5,), (2, 5)])
def test_shapes(name, sharing, leading):
    response = randomised(Response(name, B, D, OUT if name == "full" else None, sharing=sharing))
    norms = signal(*leading, B, D).abs()
    expected = (B * D, B * OUT) if name == "full" else (B, D)
    assert response(norms, gains("heat")).shape == (*leading, *expected)
    each = response(norms, gains("heat", (*leading, B)))
    assert each.shape == (*leading, *expected)
    assert response.form == ("full" if name == "full" else "diagonal")


@every_form
@pytest.mark.parametrize("mode", ["multiplicative", "additive"])
@pytest.mark.parametrize("start", STARTS)
def test_a_new_response_is_its_start(name, sharing, mode, start):
    response = Response(name, B, D, D, sharing=sharing, mode=mode, start=Start(start)).double()
    h = gains(start)
    r = response(signal(B, D).abs(), h)
    expected = h[:, None].expand(B, D)
    if name == "full":
        expected = torch.diag(expected.flatten())
    if start == "random":
        assert r.abs().min() > 0
        assert not torch.allclose(r, expected)
    else:
        torch.testing.assert_close(r, expected, atol=0, rtol=0)


@every_form
def test_multiplicative_responses_scale_the_start_and_additive_ones_add_to_it(name, sharing):
    norms, h, none = signal(B, D).abs(), gains("heat"), torch.zeros(B, dtype=torch.float64)
    for mode in ("multiplicative", "additive"):
        response = randomised(Response(name, B, D, sharing=sharing, mode=mode))
        r, at_zero = response(norms, h), response(norms, none)
        if mode == "multiplicative" and name != "full":
            assert not at_zero.any(), "a gain of 0 stays closed"
            torch.testing.assert_close(response(norms, 2 * h), 2 * r)
        else:
            assert at_zero.any()
            start = torch.diag(h.repeat_interleave(D)) if name == "full" else h[:, None]
            torch.testing.assert_close(r - at_zero, start.expand_as(r))


@every_form
def test_a_random_start_is_additive_whatever_is_asked(name, sharing):
    assert not Response(name, B, D, sharing=sharing, start=Start("random")).multiplicative


@every_network
def test_relative_norms_do_not_see_the_scale(name, sharing):
    norms, h = signal(B, D).abs(), gains("ppr")
    blind, sighted = (
        randomised(Response(name, B, D, sharing=sharing, relative=relative))
        for relative in (True, False)
    )
    torch.testing.assert_close(blind(7 * norms, h), blind(norms, h))
    assert not torch.allclose(sighted(7 * norms, h), sighted(norms, h))
    zero = torch.zeros_like(norms).requires_grad_()
    blind(zero, h).sum().backward()
    assert zero.grad.isfinite().all()


@every_network
def test_what_each_output_sees(name, sharing):
    """The matrix of which coefficient depends on which norm says what a form shares."""
    response = randomised(Response(name, B, D, D, sharing=sharing, relative=False, depth=1))
    h = torch.ones(B, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda c: response(c, h), signal(B, D).abs() + 1)
    if name == "full":
        assert (jacobian != 0).all()
        return
    depends = jacobian != 0
    band, channel = torch.eye(B, dtype=torch.bool), torch.eye(D, dtype=torch.bool)
    bands = band if name == "bandwise" else torch.ones_like(band)
    channels = torch.ones_like(channel) if sharing == "mixing" else channel
    assert torch.equal(depends, torch.einsum("ij,kl->ikjl", bands, channels))


def test_shared_networks_treat_channels_alike_and_channelwise_ones_do_not():
    norms = signal(B, 1).abs().expand(B, D)
    for name in ("diagonal", "bandwise"):
        shared, own = (
            randomised(Response(name, B, D, sharing=s))(norms, gains("heat"))
            for s in ("shared", "channelwise")
        )
        torch.testing.assert_close(shared, shared[:, :1].expand(B, D))
        assert not torch.allclose(own, own[:, :1].expand(B, D))


def test_reset_returns_to_the_start():
    response = randomised(Response("diagonal", B, D))
    before = response.network.weights[0].clone()
    response.reset_parameters()
    assert not torch.equal(before, response.network.weights[0])
    h = gains("heat")
    assert torch.equal(response(signal(B, D).abs(), h), h[:, None].expand(B, D))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"name": "dense"},
            "response must be one of diagonal, bandwise, full, constant, not 'dense'",
        ),
        ({"sharing": "none"}, "sharing must be one of shared, channelwise, mixing, not 'none'"),
        ({"mode": "affine"}, "mode must be one of multiplicative, additive, not 'affine'"),
    ],
)
def test_unknown_names_are_refused(options, says):
    with pytest.raises(ModelError, match=says):
        Response(**{"name": "diagonal", "n_bands": B, "channels": D, **options})


def test_absurd_sizes_are_refused_with_their_number_and_a_way_out():
    size = 30 * 1433 * 30 * 7
    needed = (30 * 1433 + 1) * 32 + 33 * size
    with pytest.raises(ModelError, match=f"{needed:,} parameters") as error:
        Response("full", 30, 1433, 7)
    assert "response='diagonal'" in str(error.value)
    assert "fewer bands" in str(error.value)
    Response("diagonal", 30, 1433)
    with pytest.raises(ModelError, match="sharing='shared'"):
        Response("diagonal", 300, 1433, sharing="mixing")


@pytest.mark.parametrize("sharing", ["shared", "channelwise"])
def test_a_constant_response_does_not_look_at_the_signal(sharing):
    response = randomised(Response("constant", B, D, sharing=sharing))
    h = gains("heat")
    first, second = (response(signal(B, D, seed=seed).abs(), h) for seed in (0, 1))
    assert torch.equal(first, second)
    assert (first.std(1) > 0).any() == (sharing == "channelwise")
    assert not torch.allclose(first, h[:, None].expand(B, D))
