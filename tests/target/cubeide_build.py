"""A .cproject turned into compiler calls, as STM32CubeIDE's managed build does it: by the ids of options."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

B = "com.st.stm32cube.ide.mcu.gnu.managedbuild"
_LEVELS = {"og": "-Og", "os": "-Os", "o2": "-O2", "o3": "-O3", None: "-O0"}
_FPU = {"fpv5-d16": "-mfpu=fpv5-d16"}


def configurations(project: Path) -> dict[str, ET.Element]:
    root = ET.fromstring((project / ".cproject").read_bytes())
    return {c.attrib["name"]: c for c in root.iter("configuration") if "parent" in c.attrib}


def option(scope: ET.Element, name: str) -> ET.Element | None:
    found = [o for o in scope.iter("option") if o.attrib["superClass"] == f"{B}.{name}"]
    assert len(found) <= 1, name
    return found[0] if found else None


def value(scope: ET.Element, name: str) -> str | None:
    found = option(scope, name)
    if found is None:
        return None
    text = found.attrib["value"]
    return text.rpartition(".value.")[2] if found.attrib["valueType"] == "enumerated" else text


def values(scope: ET.Element, name: str) -> list[str]:
    found = option(scope, name)
    return [] if found is None else [v.attrib["value"] for v in found.iter("listOptionValue")]


def tool(configuration: ET.Element, part: str) -> ET.Element:
    (found,) = [t for t in configuration.iter("tool") if t.attrib["superClass"] == f"{B}.tool.{part}"]
    return found


def sources(project: Path, configuration: ET.Element) -> list[Path]:
    found = []
    for entry in configuration.iter("entry"):
        assert entry.attrib["kind"] == "sourcePath"
        excluded = [e for e in entry.attrib.get("excluding", "").split("|") if e]
        for path in sorted((project / entry.attrib["name"]).rglob("*.c")):
            inner = path.relative_to(project / entry.attrib["name"])
            # The output folders of the configurations are no source folders.
            if not any(inner.is_relative_to(e) for e in (*excluded, "Debug", "Release")):
                found.append(path.relative_to(project))
    return found


def core_flags(configuration: ET.Element) -> list[str]:
    (chain,) = configuration.iter("toolChain")
    mcu = value(chain, "option.target_mcu") or ""
    assert mcu.startswith("STM32H7")
    fpu, abi = value(chain, "option.fpu"), value(chain, "option.floatabi")
    return ["-mcpu=cortex-m7", _FPU[str(fpu)], f"-mfloat-abi={abi}", "-mthumb"]


def resolve(text: str, project: Path) -> str:
    text = text.replace("${ProjName}", project.name)
    return re.sub(r"\$\{workspace_loc:/([^}]*)\}", lambda m: str(project.parent / m.group(1)), text)


def build(project: Path, name: str) -> Path:
    """Builds one configuration in its folder, every warning an error; the program."""
    configuration = configurations(project)[name]
    core = core_flags(configuration)
    compiler, linker = tool(configuration, "c.compiler"), tool(configuration, "c.linker")
    folder = project / name
    folder.mkdir()
    words = ["arm-none-eabi-gcc", *core[:1], "-std=gnu11", f"-{value(compiler, 'tool.c.compiler.option.debuglevel')}"]
    words += [f"-D{s}" for s in values(compiler, "tool.c.compiler.option.definedsymbols")]
    words += [f"-I{p}" for p in values(compiler, "tool.c.compiler.option.includepaths")]
    words += [_LEVELS[value(compiler, "tool.c.compiler.option.optimization.level")]]
    words += [
        "-ffunction-sections",
        "-fdata-sections",
        "-Wall",
        "-Werror",
        "-fstack-usage",
        "--specs=nano.specs",
        *core[1:],
    ]
    found = sources(project, configuration)
    objects = [f"{i}.o" for i in range(len(found))]
    with ThreadPoolExecutor(2) as pool:  # the compilers are processes of their own
        calls = [[*words, "-c", f"../{s}", "-o", o] for s, o in zip(found, objects, strict=True)]
        list(pool.map(lambda call: _run(call, folder), calls))
    script = resolve(value(linker, "tool.c.linker.option.script") or "", project)
    words = [
        "arm-none-eabi-gcc",
        "-o",
        f"{project.name}.elf",
        *objects,
        *core[:1],
        f"-T{script}",
        "--specs=nosys.specs",
    ]
    words += [f"-Wl,-Map={project.name}.map", "-Wl,--gc-sections", "-static"]
    words += [resolve(o, project) for o in values(linker, "tool.c.linker.option.otherflags")]
    words += ["--specs=nano.specs", *core[1:], "-Wl,--start-group", "-lc", "-lm", "-Wl,--end-group"]
    _run(words, folder)
    return folder / f"{project.name}.elf"


def _run(words: list[str], folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
