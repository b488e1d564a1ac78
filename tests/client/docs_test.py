#!/usr/bin/env python3
"""Runs the examples in docs/cpp-client.md and docs/opting-out.md: docs_test.py HOLDFAST COMPILER HEADERS

Commands are run as written, with the kubeconfig of a running server; C++ snippets are compiled.
"""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "clients"))
from server import Server  # noqa: E402

ROOT = pathlib.Path(__file__).parent.parent.parent
PAGES = [ROOT / "docs" / name for name in ("cpp-client.md", "opting-out.md")]
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer}}}
"""


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def compile_cpp(compiler, headers, folder, text):
    source = folder / "snippet.cc"
    source.write_text(text)
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
               "-Wno-missing-designated-field-initializers", "-Wno-unused", f"-I{headers}", f"-I{folder}", source]
    subprocess.run(command, check=True)


def main():
    holdfast, compiler, headers = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])
    with Server(holdfast) as server:
        folder = server.data_dir
        (folder / "widgets-crd.yaml").write_text(CRD)
        (folder / "holdfast").symlink_to(holdfast)
        environment = dict(os.environ, KUBECONFIG=str(server.kubeconfig), PATH=f"{folder}:{os.environ['PATH']}")
        for page in PAGES:
            for command in blocks(page, "sh"):
                print(command, end="")
                subprocess.run(["bash", "-euc", command], env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        functions = ""
        for page in PAGES:
            for number, code in enumerate(blocks(page, "cpp")):
                # Each snippet on its own; those that continue with `client` get one.
                given = "" if "Result<Client> client" in code else "Result<Client> client = Client::connect();\n"
                functions += f"void {page.stem.replace('-', '_')}_{number}() {{\n{given}{code}}}\n"
        compile_cpp(compiler, headers, folder, '#include "holdfast/apply/apps_v1.h"\n#include "holdfast/client/client.h"\n'
                    '#include "generated/example_v1.h"\nusing namespace holdfast;\nusing namespace holdfast::client;\n'
                    'void generated() { example_v1::Widget("w").with_spec(example_v1::WidgetSpec().with_size(1).unset_ports_item("a")); }\n'
                    + functions)
    print("passed")


if __name__ == "__main__":
    main()
