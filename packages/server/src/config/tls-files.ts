/** Certificate and key of the service, checked before it starts: TLS by itself would not say which file is wrong. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Certificate chain and private key, PEM. */
export interface TlsPair {
  readonly cert: string
  readonly key: string
}

export interface TlsPaths {
  readonly cert: string
  readonly key: string
}

/** What is in the two files; throws where one cannot be read. */
export function readTlsFiles({ cert, key }: TlsPaths): TlsPair {
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
}

/** What is wrong with the two files, which can be read. */
export function tlsProblems(certPath: string, keyPath: string): string[] {
  const paths = { cert: certPath, key: keyPath }
  return pairProblems(readTlsFiles(paths), paths)
}

/** What is wrong with a pair that was read from these files. */
export function pairProblems(pair: TlsPair, paths: TlsPaths): string[] {
  const certificate = readCertificate(pair.cert, paths.cert)
  const key = readKey(pair.key, paths.key)
  const problems = [certificate, key].filter((read) => typeof read === 'string')
  if (problems.length > 0 || typeof certificate === 'string' || typeof key === 'string') return problems
  if (certificate.checkPrivateKey(key)) return []
  // The service shows the first one as its own; those after it vouch for it.
  return [
    `RINGWIRE_TLS_KEY (${paths.key}) is not the key of the first certificate in RINGWIRE_TLS_CERT (${paths.cert})`,
  ]
}

function readCertificate(text: string, path: string): X509Certificate | string {
  try {
    return new X509Certificate(text)
  } catch {
    return `RINGWIRE_TLS_CERT holds no certificate that can be read (PEM): ${path}`
  }
}

function readKey(text: string, path: string): KeyObject | string {
  try {
    return createPrivateKey(text)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_MISSING_PASSPHRASE'
      ? `RINGWIRE_TLS_KEY holds an encrypted key; it is read without a passphrase: ${path}`
      : `RINGWIRE_TLS_KEY holds no private key that can be read (PEM): ${path}`
  }
}
