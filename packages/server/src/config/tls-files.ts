/** Certificate and key of the service, looked at before it starts: TLS alone would not say which file is wrong. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** What is wrong with the two files, which can be read. */
export function tlsProblems(certPath: string, keyPath: string): string[] {
  const certificate = readCertificate(certPath)
  const key = readKey(keyPath)
  const problems = [certificate, key].filter((read) => typeof read === 'string')
  if (problems.length > 0 || typeof certificate === 'string' || typeof key === 'string') return problems
  if (certificate.checkPrivateKey(key)) return []
  // The service shows the first one as its own; those after it vouch for it.
  return [`RINGWIRE_TLS_KEY (${keyPath}) is not the key of the first certificate in RINGWIRE_TLS_CERT (${certPath})`]
}

function readCertificate(path: string): X509Certificate | string {
  try {
    return new X509Certificate(readFileSync(path, 'utf8'))
  } catch {
    return `RINGWIRE_TLS_CERT holds no certificate that can be read (PEM): ${path}`
  }
}

function readKey(path: string): KeyObject | string {
  try {
    return createPrivateKey(readFileSync(path, 'utf8'))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_MISSING_PASSPHRASE'
      ? `RINGWIRE_TLS_KEY holds an encrypted key; it is read without a passphrase: ${path}`
      : `RINGWIRE_TLS_KEY holds no private key that can be read (PEM): ${path}`
  }
}
