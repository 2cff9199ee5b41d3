# SPDX-License-Identifier: Apache-2.0
"""An arm's dynamics as C, and as the library that the controller loads: ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from robodyn_ros import __version__
from robodyn_ros.analysis import simplified_model
from robodyn_ros.commands.options import (
    Answer,
    ArmWithRotors,
    Fraction,
    InputFile,
    OutputFolder,
    command,
)
from robodyn_ros.compiled import USUAL, export_c, export_shared
from robodyn_ros.errors import InvalidArgument, Phrase
from robodyn_ros.identification import Identification


@command(
    'robodyn export urdf/puma560.urdf --lang c -o generated',
    'robodyn export urdf/puma560.urdf --name puma --function gravity_torque -o generated',
    'robodyn export urdf/puma560.urdf --simplified 0.02 -o generated',
    'robodyn export urdf/puma560.urdf --shared --name puma -o generated',
)
def export(
    arm: ArmWithRotors,
    *,
    lang: Literal['c'] = 'c',
    output: OutputFolder = Path('.'),
    name: str = 'arm',
    function: tuple[str, ...] = (),
    simplified: Fraction | None = None,
    shared: bool = False,
    identified: InputFile | None = None,
) -> Answer:
    """
    Write an arm's dynamics as plain C99, with a self-test.

    Parameters
    ----------
    output :
        Folder to write to; it is created if missing.
    name :
        Name of the files, and prefix of the functions.
    function : NAME
        Function to write, such as gravity_torque; default: all but derivatives,
        linearization, Christoffel symbols and regressor.
    simplified : ERROR
        Write the model in the terms that matter: the fraction of itself that a coefficient may be
        wrong by, as 0.02.
    shared :
        Compile a shared library that robodyn_controllers loads; payload and gravity stay inputs.
    identified :
        YAML that robodyn identify wrote: its bodies and friction instead of the URDF's.
    """
    if shared and (simplified is not None or function):
        raise InvalidArgument(
            '--shared',
            Phrase('given with --simplified or --function'),
            'one of them: a library has it all',
        )
    model = arm.model
    if identified is not None:
        model = Identification.load(identified).applied_to(model)
    names: Any = function  # checked by what writes them
    if shared:
        paths = export_shared(model, output, name=name, generator=f'robodyn_ros {__version__}')
        then = f'It has passed its self-test. model_library: {paths[0].resolve()}'
    else:
        if simplified is None:
            paths = export_c(model, output, name=name, kernels=names or USUAL)
        else:
            few = simplified_model(model, simplified)
            paths = few.export_c(output, name=name, functions=names)
        then = f'Test it: cc -O2 {paths[1]} {paths[2]} -lm -o {name}_test && ./{name}_test'
    files = [str(path) for path in paths]
    return Answer({'files': files}, [*files, then])
