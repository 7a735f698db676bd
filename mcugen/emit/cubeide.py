"""The two files that make a folder a project of STM32CubeIDE: .project and .cproject.

Ids are those of its managed build (the superclass and a number that is unique in the file); no version of the toolchain
is pinned, so that the IDE takes its own. Facts are from public projects of several versions; no IDE was at hand.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from mcugen.target.board import ProjectSettings

_B = "com.st.stm32cube.ide.mcu.gnu.managedbuild"
_CDT = "org.eclipse.cdt"
_EXE = f"{_CDT}.build.core.buildArtefactType.exe"
_NATURES = (
    "com.st.stm32cube.ide.mcu.MCUProjectNature",
    f"{_CDT}.core.cnature",
    "com.st.stm32cube.ide.mcu.MCUCubeIdeServicesRevAev2ProjectNature",
    "com.st.stm32cube.ide.mcu.MCUSingleCpuProjectNature",
    "com.st.stm32cube.ide.mcu.MCURootProjectNature",
    f"{_CDT}.managedbuilder.core.managedBuildNature",
    f"{_CDT}.managedbuilder.core.ScannerConfigNature",
)
#: Build command, and what triggers it.
_BUILDERS = (
    ("genmakebuilder", "clean,full,incremental,"),
    ("ScannerConfigBuilder", "full,incremental,"),
)
_PARSERS = ("GASErrorParser", "GmakeErrorParser", "GLDErrorParser", "CWDLocator", "GCCErrorParser")
_CONVERTERS = (
    ("size", "Size"),
    ("objdump.listfile", "Output Converter list file"),
    ("objcopy.hex", "Output Converter Hex"),
    ("objcopy.binary", "Output Converter Binary"),
    ("objcopy.verilog", "Output Converter Verilog"),
    ("objcopy.srec", "Output Converter Motorola S-rec"),
)
#: Where sources are: the whole folder but for this.
_EXCLUDED = ("golden", "cmake", "build")


def project_text(name: str) -> str:
    """.project: natures and builders."""
    root = ET.Element("projectDescription")
    ET.SubElement(root, "name").text = name
    ET.SubElement(root, "comment")
    ET.SubElement(root, "projects")
    spec = ET.SubElement(root, "buildSpec")
    for builder, triggers in _BUILDERS:
        command = ET.SubElement(spec, "buildCommand")
        ET.SubElement(command, "name").text = f"{_CDT}.managedbuilder.core.{builder}"
        ET.SubElement(command, "triggers").text = triggers
        ET.SubElement(command, "arguments")
    natures = ET.SubElement(root, "natures")
    for nature in _NATURES:
        ET.SubElement(natures, "nature").text = nature
    return _text(root, ())


def cproject_text(name: str, settings: ProjectSettings, folders: Sequence[str] = ("",)) -> str:
    """.cproject: the configurations Debug and Release. ``folders``: of the models, from that of the project; each has
    the runtime, which is built once."""
    writer = _Writer(settings, tuple(f"../{f}".rstrip("/") for f in folders), tuple(f"{f}/mcugen" for f in folders[1:]))
    root = ET.Element("cproject", storage_type_id=f"{_CDT}.core.XmlProjectDescriptionStorage")
    core = ET.SubElement(root, "storageModule", moduleId=f"{_CDT}.core.settings")
    built = [writer.configuration(core, title) for title in ("Debug", "Release")]
    ET.SubElement(root, "storageModule", moduleId=f"{_CDT}.core.pathentry")
    system = ET.SubElement(root, "storageModule", moduleId="cdtBuildSystem", version="4.0.0")
    ET.SubElement(system, "project", id=f"{name}.null.{writer.number()}", name=name)
    ET.SubElement(root, "storageModule", moduleId=f"{_CDT}.core.LanguageSettingsProviders")
    refresh = ET.SubElement(root, "storageModule", moduleId="refreshScope", versionNumber="2")
    for title in ("Debug", "Release"):
        scope = ET.SubElement(refresh, "configuration", configurationName=title)
        ET.SubElement(scope, "resource", resourceType="PROJECT", workspacePath=f"/{name}")
    scanner = ET.SubElement(root, "storageModule", moduleId="scannerConfiguration")
    discovery = {"enabled": "true", "problemReportingEnabled": "true", "selectedProfileId": ""}
    ET.SubElement(scanner, "autodiscovery", discovery)
    for configuration, tool, source in built:
        info = ET.SubElement(
            scanner, "scannerConfigBuildInfo", instanceId=f"{configuration};{configuration}.;{tool};{source}"
        )
        ET.SubElement(info, "autodiscovery", discovery)
    return _text(root, ("<?fileVersion 4.0.0?>",))


def _text(root: ET.Element, instructions: tuple[str, ...]) -> str:
    ET.indent(root, "\t")
    head = '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
    if not instructions:
        head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return head + "".join(instructions) + ET.tostring(root, encoding="unicode") + "\n"


@dataclass(slots=True)
class _Writer:
    """Numbers that are unique in one file."""

    settings: ProjectSettings
    folders: tuple[str, ...]
    excluded: tuple[str, ...]
    _count: count[int] = field(default_factory=lambda: count(100_000_001))

    def number(self) -> int:
        return next(self._count)

    def unique(self, superclass: str) -> dict[str, str]:
        return {"id": f"{superclass}.{self.number()}", "superClass": superclass}

    def configuration(self, core: ET.Element, title: str) -> tuple[str, str, str]:
        """One configuration; the ids of it, of its C compiler and of that one's input."""
        kind = title.lower()
        parent = f"{_B}.config.exe.{kind}"
        ident = f"{parent}.{self.number()}"
        outer = ET.SubElement(core, "cconfiguration", id=ident)
        data = ET.SubElement(
            outer,
            "storageModule",
            buildSystemId=f"{_CDT}.managedbuilder.core.configurationDataProvider",
            id=ident,
            moduleId=f"{_CDT}.core.settings",
            name=title,
        )
        ET.SubElement(data, "externalSettings")
        extensions = ET.SubElement(data, "extensions")
        ET.SubElement(extensions, "extension", id=f"{_CDT}.core.ELF", point=f"{_CDT}.core.BinaryParser")
        for parser in _PARSERS:
            ET.SubElement(extensions, "extension", id=f"{_CDT}.core.{parser}", point=f"{_CDT}.core.ErrorParser")
        system = ET.SubElement(outer, "storageModule", moduleId="cdtBuildSystem", version="4.0.0")
        words = {"artifactExtension": "elf", "artifactName": "${ProjName}", "buildArtefactType": _EXE}
        build_type = f"{_CDT}.build.core.buildType={_CDT}.build.core.buildType.{kind}"
        words["buildProperties"] = f"{_CDT}.build.core.buildArtefactType={_EXE},{build_type}"
        words |= {"cleanCommand": "rm -rf", "description": "", "id": ident, "name": title, "parent": parent}
        configuration = ET.SubElement(system, "configuration", words)
        folder = ET.SubElement(configuration, "folderInfo", id=f"{ident}.", name="/", resourcePath="")
        ids = self.toolchain(folder, title)
        entries = ET.SubElement(configuration, "sourceEntries")
        flags = "VALUE_WORKSPACE_PATH|RESOLVED"
        ET.SubElement(
            entries, "entry", excluding="|".join((*_EXCLUDED, *self.excluded)), flags=flags, kind="sourcePath", name=""
        )
        ET.SubElement(outer, "storageModule", moduleId=f"{_CDT}.core.externalSettings")
        return (ident, *ids)

    def toolchain(self, folder: ET.Element, title: str) -> tuple[str, str]:
        kind = title.lower()
        chain = ET.SubElement(folder, "toolChain", {**self.unique(f"{_B}.toolchain.exe.{kind}"), "name": "MCU ARM GCC"})
        s = self.settings
        for key, value in (
            ("target_mcu", s.mcu),
            ("target_cpuid", "0"),
            ("target_coreid", "0"),
            ("target_board", "genericBoard"),
        ):
            self.option(chain, f"{_B}.option.{key}", value, "string")
        self.option(chain, f"{_B}.option.fpu", f"{_B}.option.fpu.value.{s.fpu}", "enumerated")
        self.option(chain, f"{_B}.option.floatabi", f"{_B}.option.floatabi.value.{s.float_abi}", "enumerated")
        platform = {"archList": "all", "binaryParser": f"{_CDT}.core.ELF", "isAbstract": "false", "osList": "all"}
        ET.SubElement(chain, "targetPlatform", platform | self.unique(f"{_B}.targetplatform"))
        builder = {"buildPath": f"${{workspace_loc:/${{ProjName}}}}/{title}", "keepEnvironmentInBuildfile": "false"}
        builder |= {"managedBuildOn": "true", "name": "Gnu Make Builder", "parallelBuildOn": "true"}
        builder |= {"parallelizationNumber": "optimal"}
        ET.SubElement(chain, "builder", builder | self.unique(f"{_B}.builder"))
        return self.tools(chain, title)

    def tools(self, chain: ET.Element, title: str) -> tuple[str, str]:
        debug = title == "Debug"
        level, info = ("og", "g3") if debug else ("o2", "g0")
        assembler = self.tool(chain, "assembler", "MCU GCC Assembler")
        self.enumerated(assembler, "assembler", "debuglevel", info)
        self.list(assembler, "assembler", "includepaths", "includePath", self.folders)
        self.input(assembler, "assembler.input")
        ids = []
        for language, name in (("c", "MCU GCC Compiler"), ("cpp", "MCU G++ Compiler")):
            compiler = self.tool(chain, f"{language}.compiler", name)
            self.enumerated(compiler, f"{language}.compiler", "debuglevel", info)
            self.enumerated(compiler, f"{language}.compiler", "optimization.level", level)
            symbols = (*(("DEBUG",) if debug else ()), *self.settings.defines)
            self.list(compiler, f"{language}.compiler", "definedsymbols", "definedSymbols", symbols)
            self.list(compiler, f"{language}.compiler", "includepaths", "includePath", self.folders)
            ids.append((compiler.attrib["id"], self.input(compiler, f"{language}.compiler.input.{language}")))
        for language, name in (("c", "MCU GCC Linker"), ("cpp", "MCU G++ Linker")):
            linker = self.tool(chain, f"{language}.linker", name)
            base = f"{_B}.tool.{language}.linker.option"
            self.option(linker, f"{base}.script", "${workspace_loc:/${ProjName}/app/app.ld}", "string")
            self.list(
                linker,
                f"{language}.linker",
                "otherflags",
                "stringList",
                (f"-Wl,-T,{self.folders[0]}/mcugen/mcugen.ld",),
            )
            more = ET.SubElement(linker, "inputType", self.unique(f"{_B}.tool.{language}.linker.input"))
            ET.SubElement(more, "additionalInput", kind="additionalinputdependency", paths="$(USER_OBJS)")
            ET.SubElement(more, "additionalInput", kind="additionalinput", paths="$(LIBS)")
        self.tool(chain, "archiver", "MCU GCC Archiver")
        for part, name in _CONVERTERS:
            self.tool(chain, part, f"MCU {name}")
        return ids[0]

    def tool(self, chain: ET.Element, part: str, name: str) -> ET.Element:
        return ET.SubElement(chain, "tool", {**self.unique(f"{_B}.tool.{part}"), "name": name})

    def input(self, tool: ET.Element, part: str) -> str:
        return ET.SubElement(tool, "inputType", self.unique(f"{_B}.tool.{part}")).attrib["id"]

    def option(self, parent: ET.Element, superclass: str, value: str, kind: str) -> None:
        words = {**self.unique(superclass), "useByScannerDiscovery": "false", "value": value, "valueType": kind}
        ET.SubElement(parent, "option", words)

    def enumerated(self, tool: ET.Element, part: str, option: str, value: str) -> None:
        superclass = f"{_B}.tool.{part}.option.{option}"
        self.option(tool, superclass, f"{superclass}.value.{value}", "enumerated")

    def list(self, tool: ET.Element, part: str, option: str, kind: str, values: tuple[str, ...]) -> None:
        words = {**self.unique(f"{_B}.tool.{part}.option.{option}"), "IS_BUILTIN_EMPTY": "false"}
        words |= {"IS_VALUE_EMPTY": "false" if values else "true", "useByScannerDiscovery": "false", "valueType": kind}
        found = ET.SubElement(tool, "option", words)
        for value in values:
            ET.SubElement(found, "listOptionValue", builtIn="false", value=value)
