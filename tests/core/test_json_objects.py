from tests.growth import growth

from medassay.core.reply.json_objects import find_objects


def test_many_objects_cost_linear_time_and_long_ruins_are_not_repaired():
    text = "".join(f'{{"items": ["a{i}"]}}' for i in range(1000))
    assert growth(lambda reply: find_objects(reply, "items"), text, 4) < 24
    assert find_objects('{"items": [' + '"a ' * 20_000, "items") == []
