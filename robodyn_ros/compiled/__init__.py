# SPDX-License-Identifier: Apache-2.0
"""Compiled straight-line code for one arm, its constants folded in."""

from robodyn_ros.compiled.c.export import export_c
from robodyn_ros.compiled.c.shared import export_shared
from robodyn_ros.compiled.compiled_model import CompiledModel, compile_model
from robodyn_ros.compiled.symbolic.kernels import KERNELS, RIGID_BODY, USUAL

__all__ = [
    'KERNELS',
    'RIGID_BODY',
    'USUAL',
    'CompiledModel',
    'compile_model',
    'export_c',
    'export_shared',
]
