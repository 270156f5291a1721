/** The commands that fetch the libraries of GPUs and put them into one folder, as a shell script: what is printed is what is run. */
import { CUDA_PACKAGES, requirements, TENSORRT_PACKAGE } from "./packages.ts";

/** Wheels for whatever Python fetches them: only libraries are taken out of them. */
const WHEELS = [
  "--only-binary=:all:",
  "--python-version 3.12 --implementation cp",
  ...["manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014"].map((tag) => `--platform ${tag}_x86_64`),
].join(" ");

const PIP = "python3 -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --require-hashes";

/** For `sh -eu`. The folder is replaced when everything is there, so that it is never half of one. */
export function setupScript(dir: string, tensorrt: boolean): string[] {
  const making = `${dir}.making`;
  return [
    "umask 077",
    `rm -rf ${quoted(making)}`,
    `mkdir -p ${quoted(`${making}/tmp`)}`,
    `cd ${quoted(making)}`,
    "# A wheel takes half a gigabyte while it is unpacked, which /tmp may not have.",
    'export TMPDIR="$PWD/tmp" PIP_ROOT_USER_ACTION=ignore',
    ...file("requirements.txt", requirements(CUDA_PACKAGES)),
    `${PIP} ${WHEELS} --no-compile --target packages -r requirements.txt`,
    ...(tensorrt ? tensorrtLines() : []),
    "for library in packages/onnxruntime/capi/libonnxruntime*.so* packages/*/lib*.so* packages/nvidia/*/lib/lib*.so*; do",
    '  if [ -e "$library" ]; then ln -s "$library" .; fi',
    "done",
    "rm -rf tmp",
    `rm -rf ${quoted(dir)}`,
    `mv ${quoted(making)} ${quoted(dir)}`,
  ];
}

function tensorrtLines(): string[] {
  return [
    "# On PyPI this one is a stub: pip takes the libraries, some gigabytes, from an index of NVIDIA's own.",
    ...file("tensorrt.txt", requirements([TENSORRT_PACKAGE])),
    `${PIP} --no-compile --upgrade --target packages -r tensorrt.txt`,
  ];
}

function file(name: string, lines: readonly string[]): string[] {
  return [`cat > ${name} <<'END'`, ...lines, "END"];
}

/** A word of the shell. */
export function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
