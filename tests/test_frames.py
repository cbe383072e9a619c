"""Whose code the frames of a stack are in."""

from traceback import FrameSummary

import torch

from kernelcount.frames import innermost


def frame(file, line):
    return FrameSummary(file, line, "f", lookup_line=False)


OURS, THEIRS = frame("/home/me/step.py", 14), frame(torch.nn.__file__, 3)


def test_torchs_own_frames_are_passed_over():
    assert innermost([frame("/home/me/main.py", 2), OURS, THEIRS]) is OURS


def test_where_all_are_torchs_it_is_the_innermost():
    assert innermost([frame(torch.__file__, 1), THEIRS]) is THEIRS
