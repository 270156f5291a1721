/** A certificate and its key, as PEM files hold them. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { EXIT, Problem } from "../std/problem.ts";

/** Absolute paths. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

export interface Certificate {
  /** The server's certificate first, then those that lead to its authority. */
  readonly cert: string;
  /** A secret. */
  readonly key: string;
  /** Unix ms when the server's certificate expires. */
  readonly expiresMs: number;
}

/** Reads both files. What is no pair is refused here, since a server with it would refuse every client. */
export async function readCertificate(files: CertificateFiles): Promise<Certificate | Problem> {
  const [cert, key] = await Promise.all([text("TENDON_TLS_CERT", files.cert), text("TENDON_TLS_KEY", files.key)]);
  if (cert instanceof Problem) return cert;
  if (key instanceof Problem) return key;
  const read = parsed(() => new X509Certificate(cert));
  if (read === undefined) return wrong(`TENDON_TLS_CERT ${files.cert} holds no certificate in PEM`);
  const secret = parsed(() => createPrivateKey(key));
  if (secret === undefined) return wrong(`TENDON_TLS_KEY ${files.key} holds no private key in PEM without a password`);
  if (!read.checkPrivateKey(secret)) {
    return wrong(
      `TENDON_TLS_KEY ${files.key} is not the key of the first certificate in TENDON_TLS_CERT ${files.cert}`,
    );
  }
  return { cert, key, expiresMs: Date.parse(read.validTo) };
}

/** Changes when one of the files does. */
export async function certificateVersion({ cert, key }: CertificateFiles): Promise<string> {
  const of = async (path: string) => {
    const found = await stat(path).catch(() => undefined);
    return found ? `${found.ino} ${found.size} ${found.mtimeMs}` : "none";
  };
  return (await Promise.all([of(cert), of(key)])).join(" / ");
}

async function text(name: string, path: string): Promise<string | Problem> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    return wrong(`${name} ${path} cannot be read: ${(error as { code?: string }).code ?? "it is no file"}`);
  }
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

function wrong(message: string): Problem {
  return new Problem(message, EXIT.usage);
}
