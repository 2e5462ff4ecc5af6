/** The certificate of `ringwire serve --lan`: browsers only open a camera for https pages. */
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { tlsProblems } from '../config/tls-files.ts'
import { CommandFailure, exitCodes } from './command.ts'

export const lanCertificateFile = 'lan-cert.pem'
export const lanKeyFile = 'lan-key.pem'
const days = 365
const dayMs = 86_400_000

/** The files of a certificate for these addresses in the data directory; made by openssl where there is none that fits. */
export function ensureCertificate(
  dataDir: string,
  addresses: readonly string[],
  now: number,
): { readonly cert: string; readonly key: string } {
  const [cert, key] = [join(dataDir, lanCertificateFile), join(dataDir, lanKeyFile)]
  if (!fits(cert, key, addresses, now)) make(dataDir, { cert, key }, addresses)
  return { cert, key }
}

function fits(cert: string, key: string, addresses: readonly string[], now: number): boolean {
  if (!existsSync(cert) || !existsSync(key)) return false
  try {
    const found = new X509Certificate(readFileSync(cert))
    const isFor = addresses.every((address) => found.checkIP(address))
    // A start that was stopped while it made them left halves of two pairs.
    return isFor && Date.parse(found.validTo) > now + dayMs && tlsProblems(cert, key).length === 0
  } catch {
    return false
  }
}

function make(dataDir: string, files: { cert: string; key: string }, addresses: readonly string[]): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const names = ['DNS:localhost', 'IP:127.0.0.1', ...addresses.map((address) => `IP:${address}`)].join(',')
  const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-sha256']
  const whose = ['-days', String(days), '-subj', '/CN=Ringwire on this network', '-addext', `subjectAltName=${names}`]
  const purpose = ['-addext', 'extendedKeyUsage=serverAuth', '-keyout', files.key, '-out', files.cert]
  const own = 'or name a certificate of your own with RINGWIRE_TLS_CERT and RINGWIRE_TLS_KEY'
  let made: { success: boolean; stderr: Buffer }
  try {
    made = Bun.spawnSync(['openssl', ...kind, ...whose, ...purpose], { stdout: 'ignore', stderr: 'pipe' })
  } catch {
    throw new CommandFailure(
      exitCodes.failed,
      `--lan makes a certificate with openssl, which is not installed: install it, ${own}`,
    )
  }
  if (made.success) return
  const said = made.stderr.toString().trim().split('\n').at(-1) ?? ''
  throw new CommandFailure(exitCodes.failed, `openssl could not make a certificate (${said}): solve that, ${own}`)
}
