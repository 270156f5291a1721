/**
 * What of PyPI brings the libraries of NVIDIA GPUs: the ONNX Runtime of the product's version with its providers, and what these need.
 * Pinned by the digest of the Linux x86-64 wheel. A new ONNX Runtime: its version and digest here, and the others as its extras say.
 */
import { PREBUILT } from "../../engine/library.ts";

export interface Package {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
  /** SHA-256 of the download. */
  readonly megabytes: number;
  /** Names of its libraries begin so. */
  readonly brings: readonly string[];
}

export const CUDA_PACKAGES: readonly Package[] = [
  {
    name: "onnxruntime-gpu",
    version: PREBUILT.runtime.version,
    sha256: "6acc0f4b3d5ac5f2984432faa59dd8fcce6775f8b43a7140afa0f322c7a703b1",
    megabytes: 247,
    brings: ["libonnxruntime"],
  },
  {
    name: "nvidia-cublas",
    version: "13.10.0.20",
    sha256: "dcc6d63884c53d07e267ce7e6feac17b2538cebaafec5db865736c3e28e4dc84",
    megabytes: 444,
    brings: ["libcublas", "libnvblas"],
  },
  {
    name: "nvidia-cuda-runtime",
    version: "13.5.37",
    sha256: "df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d",
    megabytes: 3,
    brings: ["libcudart"],
  },
  {
    name: "nvidia-curand",
    version: "10.4.5.25",
    sha256: "22bb226a857e5888fe6b54ae465fc4371296bcff13a35f79e19691bcf454f529",
    megabytes: 77,
    brings: ["libcurand"],
  },
  {
    name: "nvidia-cufft",
    version: "12.5.0.14",
    sha256: "b8be26837a5abad2b5b74f3e92dd29f622a42934b355be0961a48712cbba23ad",
    megabytes: 165,
    brings: ["libcufft"],
  },
  {
    name: "nvidia-nvjitlink",
    version: "13.5.37",
    sha256: "280d7cb9649704145f074b8dbde500de04ce02d0872e066e20a83c17bcaa93eb",
    megabytes: 47,
    brings: ["libnvJitLink"],
  },
  {
    name: "nvidia-cudnn-cu13",
    version: "9.28.1.4",
    sha256: "a54f205b1db1f2895d99f398754db1369816f0569dd459731f925635cf7b65ec",
    megabytes: 517,
    brings: ["libcudnn"],
  },
  {
    name: "nvidia-cuda-nvrtc",
    version: "13.5.37",
    sha256: "86b4d68058807988b7d9af5b44917a0601e9c337f35ccd657bfb3c759ff8d8bc",
    megabytes: 58,
    brings: ["libnvrtc"],
  },
];

/**
 * The newest whose libnvinfer.so.10 fits that ONNX Runtime. On PyPI it is a source package of a few kilobytes, the digest is of that: when
 * pip builds it, it takes the libraries from an index of NVIDIA's own.
 */
export const TENSORRT_PACKAGE: Package = {
  name: "tensorrt-cu13-libs",
  version: "10.16.1.11",
  sha256: "0e86cd02321b7258c2521495a7d8f0591852e6966ed7e43cfe33640c737495a3",
  megabytes: 0,
  brings: ["libnvinfer", "libnvonnxparser"],
};

/** Requirements as pip checks them: nothing is installed whose digest is another. */
export function requirements(packages: readonly Package[]): string[] {
  return packages.map(({ name, version, sha256 }) => `${name}==${version} --hash=sha256:${sha256}`);
}

/** The package that brings a library. */
export function packageOf(library: string): Package | undefined {
  return [...CUDA_PACKAGES, TENSORRT_PACKAGE].find(({ brings }) => brings.some((begin) => library.startsWith(begin)));
}
