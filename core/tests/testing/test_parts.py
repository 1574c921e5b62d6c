"""Drawn programs of several parts of code: which part holds a kernel is never lost."""

from __future__ import annotations

from dataclasses import replace

from trunnion.model.capability import Capability
from trunnion.model.program import KernelProgram
from trunnion.testing.comparison import symbols_of
from trunnion.testing.draws import for_examples
from trunnion.testing.machine import synthetic_image
from trunnion.testing.reference import parameter_layouts
from trunnion.testing.strategies import programs

SEVERAL = programs(required={Capability.MULTI_LAUNCH})
EXAMPLES = 30


def test_a_plan_has_the_oracle_s_kernels_each_in_its_part():
    def body(program):
        found = [
            ((one.name, one.part), tuple((given.size, given.alignment) for given in one.parameters))
            for one in program.plan().kernels
        ]
        assert found == list(parameter_layouts(program).items())

    for_examples(SEVERAL, EXAMPLES, body)


def test_names_in_an_image_tell_kernels_apart():
    def body(program):
        image = synthetic_image(program)
        assert [kernel.symbol for kernel in image.kernels] == list(symbols_of(program).values())
        assert len(set(symbols_of(program).values())) == len(program.plan().kernels)

    for_examples(SEVERAL, EXAMPLES, body)


def test_the_parts_of_a_program_travel():
    def body(program):
        assert KernelProgram.from_json(program.to_json()) == program

    for_examples(SEVERAL, EXAMPLES, body)


def test_to_name_the_first_part_is_to_name_none():
    def body(program):
        first = program.code[0]
        launches = tuple(replace(one, code=one.code or first) for one in program.launches)
        assert replace(program, launches=launches).plan() == program.plan()

    for_examples(SEVERAL, EXAMPLES, body)


def test_namesakes_in_other_parts_are_drawn_alike_and_different():
    counts = {"parts": 0, "alike": 0, "different": 0}

    def body(program):
        counts["parts"] += len(program.code) > 1
        layouts = {}
        for (name, _), layout in parameter_layouts(program).items():
            if name in layouts:
                counts["alike" if layouts[name] == layout else "different"] += 1
            layouts[name] = layout

    for seed in range(3):  # what is drawn under one seed is much alike
        for_examples(SEVERAL, EXAMPLES, body, seed=seed)
    assert min(counts.values()) > 2, counts
    assert counts["parts"] < 3 * EXAMPLES, counts
