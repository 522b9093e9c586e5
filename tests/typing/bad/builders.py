"""Programs that type checkers refuse, each at the line that is marked: nodes and their handles."""

from __future__ import annotations

from typing import Any

import weft
from tests.typing.shapes import Hit, In, Out, Point, above, fetch, longest, rate, search, shift

flow = weft.Flow("program")
topic = flow.input("topic", str)


def a_field_of_an_item_of_a_tool() -> Any:
    hits = flow.tool(search, topic, limit=5)
    return hits[0].nonexistent  # error


def a_field_of_a_call() -> Any:
    point = flow.call(fetch, topic)
    return point.z  # error


def a_name_as_an_index() -> Any:
    hits = flow.tool(search, topic, limit=5)
    return hits["title"]  # error


def no_argument() -> None:
    flow.tool(search)  # error


def an_argument_of_another_type() -> None:
    flow.tool(search, 3)  # error


def an_unknown_argument() -> None:
    flow.tool(search, topic, top=3)  # error


def too_many_arguments() -> None:
    flow.call(shift, Point(1), 2, 3)  # error


def a_handle_of_another_type() -> None:
    flow.tool(rate, topic)  # error


def a_list_for_an_item() -> None:
    flow.tool(rate, flow.tool(search, topic, limit=5))  # error


def a_keyword_of_another_type() -> None:
    flow.tool(search, topic, limit="5")  # error


def an_option_of_another_type() -> None:
    flow.tool(search, topic, retry_on=3.5)  # error


def an_option_beside_arguments_by_name() -> None:
    flow.tool(search, query="tea", retry=2)  # error


def an_unknown_argument_beside_options() -> None:
    flow.options(retry=2).tool(search, topic, top=3)  # error


def an_argument_of_another_type_beside_options() -> None:
    flow.options(retry=2).tool(search, query=3)  # error


def an_unknown_option() -> None:
    flow.options(retrys=2).tool(search, topic)  # error


def an_option_with_a_wrong_value() -> None:
    flow.options(retry_on=3.5).tool(search, topic)  # error


def a_field_of_an_item_beside_options() -> Any:
    return flow.options(timeout=3).tool(search, topic, limit=5)[0].nonexistent  # error


def an_output_with_options() -> None:
    flow.options(timeout=3).output(topic=topic)  # error


def arguments_that_are_no_mapping() -> None:
    flow.tool(search, topic, args=["5"])  # error


def a_result_for_another_type() -> None:
    rating: str = flow.tool(rate, Hit(title="t"))  # error
    flow.output(rating=rating)


def a_field_of_an_answer() -> Any:
    out = flow.model("m", "p", schema=Out)
    return out.nonexistent  # error


def a_field_of_samples() -> Any:
    outs = flow.model("m", "p", schema=Out, samples=3)
    return outs.answer  # error


def an_answer_for_another_type() -> None:
    out = flow.model("m", "p", schema=Out)
    flow.tool(rate, out)  # error


def a_text_for_a_number() -> None:
    flow.call(shift, Point(1), flow.model("m", "p"))  # error


def an_unknown_keyword_of_a_model() -> None:
    flow.model("m", "p", shema=Out)  # error


def a_temperature_that_is_a_text() -> None:
    flow.model("m", "p", temperature="high")  # error


def a_model_without_a_name() -> None:
    flow.model(schema=Out)  # error


def an_item_in_a_body() -> None:
    flow.map(flow.tool(search, topic, limit=5), lambda hit: hit.nonexistent)  # error


def a_body_with_three_parameters() -> None:
    flow.map(flow.tool(search, topic, limit=5), lambda hit, index, more: hit)  # error


def a_body_for_other_items() -> None:
    def body(hit: Hit) -> str:
        return hit.title

    flow.map([1, 2], body)  # error


def an_unknown_keyword_of_a_map() -> None:
    flow.map([1, 2], lambda number: number, wdth=3)  # error


def an_unknown_mode() -> None:
    flow.map([1, 2], lambda number: number, mode="most")  # error


def a_map_over_no_list() -> None:
    flow.map(3, lambda number: number)  # error


def the_result_of_a_map() -> Any:
    rates = flow.map(flow.tool(search, topic), lambda hit: flow.tool(rate, hit))
    return rates[0].title  # error


def a_reduction_of_other_items() -> None:
    flow.reduce(longest, [1, 2])  # error


def a_reduction_without_an_argument() -> None:
    flow.reduce(above, flow.tool(search, topic))  # error


def a_loop_without_max() -> None:
    flow.loop(1, lambda number: number, until="done")  # error


def an_unknown_keyword_of_a_loop() -> None:
    flow.loop(1, lambda number: number, until="done", max=3, until_then=2)  # error


def the_end_of_a_loop() -> Any:
    end = flow.loop(Point(1), lambda point: flow.call(shift, point), until="done", max=3)
    return end.z  # error


def the_value_in_a_loop() -> None:
    flow.loop(Point(1), lambda point: point.z, until="done", max=3)  # error


def an_unknown_keyword_of_a_question() -> None:
    flow.ask("Publish?", bool, timout=3)  # error


def an_answer_of_a_person() -> Any:
    return flow.ask("Publish?", bool).text  # error


def an_unknown_keyword_of_a_join() -> None:
    flow.join(flow.model("m", "a"), flow.model("m", "b"), valdi=True)  # error


def an_item_of_a_join() -> Any:
    return flow.join(flow.model("m", "a"), flow.model("m", "b"))[0].answer  # error


def an_unknown_keyword_of_a_branch() -> None:
    flow.branch(topic == "tea", {True: "good"}, whn=True)  # error


def cases_that_are_no_mapping() -> None:
    flow.branch(topic == "tea", ["good"])  # error


def an_unknown_keyword_of_a_value() -> None:
    flow.value(1, nme="one")  # error


def a_field_of_an_input() -> Any:
    return flow.input("inputs", In).topc  # error


def a_condition_that_is_a_list() -> None:
    flow.value(1, when=[topic])  # error
