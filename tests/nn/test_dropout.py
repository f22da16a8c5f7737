import pytest
import torch
from torch import nn
from torch.func import functional_call

from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout, draw_masks, dropout_shapes


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 50), nn.BatchNorm1d(50), Dropout(0.25), nn.Linear(50, 6), Dropout(0.0)
    )


def shapes_of(made, x):
    return dropout_shapes(made, lambda: made(x))


def generator(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
def test_a_rate_that_is_none_is_refused(p):
    with pytest.raises(ModelError, match="at least 0 and less than 1"):
        Dropout(p)


def test_without_a_mask_it_is_that_of_torch():
    x = torch.randn(30, 7)
    torch.manual_seed(3)
    expected = nn.Dropout(0.4)(x)
    torch.manual_seed(3)
    assert torch.equal(Dropout(0.4)(x), expected)


def test_a_rate_of_zero_is_the_identity():
    x = torch.randn(5)
    made = Dropout(0.0)
    assert made(x) is x
    made.mask = torch.zeros(5)
    assert made(x) is x


def test_a_mask_is_multiplied_in_training_and_not_looked_at_in_evaluation():
    made = Dropout(0.5)
    made.mask = torch.tensor([0.0, 2.0, 2.0])
    x = torch.tensor([1.0, 2.0, 3.0])
    assert made(x).tolist() == [0.0, 4.0, 6.0]
    assert made(x.half()).dtype == torch.float16
    assert made.eval()(x) is x


def test_masks_are_no_part_of_the_state():
    made = network()
    before = set(made.state_dict())
    made[2].mask = torch.ones(3, 50)
    assert set(made.state_dict()) == before
    network().load_state_dict(made.state_dict())


def test_shapes_are_those_of_the_inputs_and_looking_changes_nothing():
    made = network()
    made[0].eval()
    state = {name: value.clone() for name, value in made.state_dict().items()}
    torch.manual_seed(5)
    random = torch.get_rng_state()
    assert shapes_of(made, torch.zeros(3, 4)) == {"2": (3, 50)}
    assert torch.equal(torch.get_rng_state(), random)
    assert made.training
    assert not made[0].training
    assert not made[2]._forward_pre_hooks
    for name, value in made.state_dict().items():
        assert torch.equal(value, state[name])


def test_a_call_that_fails_leaves_no_trace():
    made = network()
    with pytest.raises(RuntimeError):
        shapes_of(made, torch.zeros(3, 5))
    assert made.training
    assert not made[2]._forward_pre_hooks


def test_one_mask_cannot_serve_two_calls():
    shared = Dropout(0.5)
    made = nn.Sequential(shared, shared)
    with pytest.raises(ModelError, match="'0' is used twice"):
        shapes_of(made, torch.zeros(3))


def test_masks_come_from_the_generator_alone():
    made = network()
    shapes = shapes_of(made, torch.zeros(400, 4))
    first, again = (draw_masks(made, shapes, generator(1)) for _ in range(2))
    other = draw_masks(made, shapes, generator(2))
    assert set(first) == {"2.mask"}
    assert torch.equal(first["2.mask"], again["2.mask"])
    assert not torch.equal(first["2.mask"], other["2.mask"])
    mask = first["2.mask"]
    assert mask.dtype == torch.float32
    assert mask.unique().tolist() == [0.0, pytest.approx(1 / 0.75)]
    assert (mask == 0).double().mean() == pytest.approx(0.25, abs=0.01)
    rng = generator(1)
    draw_masks(made, shapes, rng)
    assert not torch.equal(draw_masks(made, shapes, rng)["2.mask"], mask)


def test_a_module_that_is_itself_a_dropout():
    made = Dropout(0.5)
    masks = draw_masks(made, shapes_of(made, torch.zeros(9)), generator(0))
    x = torch.randn(9)
    assert torch.equal(functional_call(made, masks, (x,)), x * masks["mask"])
    assert made.mask is None


def test_masks_reach_the_module_by_name():
    made = network()
    x = torch.randn(8, 4)
    masks = draw_masks(made, shapes_of(made, x), generator(0))
    one, two = (functional_call(made, masks, (x,)) for _ in range(2))
    assert torch.equal(one, two)
    hidden = made[1](made[0](x)) * masks["2.mask"]
    torch.testing.assert_close(one, made[3](hidden))
    assert repr(made[2]) == "Dropout(p=0.25)"


@pytest.mark.parametrize("rows", [slice(0, 4), slice(4, 7)])
def test_a_part_of_a_batch_has_its_rows_of_the_mask(rows):
    made, size = Dropout(0.5), rows.stop - rows.start
    whole = draw_masks(made, {"": torch.Size([7, 3])}, generator(0))["mask"]
    rng, window = generator(0), (rows.start, 7)
    part = draw_masks(made, {"": torch.Size([size, 3])}, rng, {"": window})["mask"]
    assert torch.equal(part, whole[rows])
    made.generator, made.window = generator(0), lambda count: window
    assert torch.equal(made(torch.ones(size, 3)), whole[rows])
    # Whoever has the other rows goes on with the same numbers.
    assert torch.equal(rng.get_state(), made.generator.get_state())
