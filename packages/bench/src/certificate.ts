// A certificate for the time of a measurement. Its key is on the curve P-256, as authorities issue them by default today:
// the signature of a handshake with RSA costs many times as much.
import { join } from 'node:path'

export interface Certificate {
  readonly cert: string
  readonly key: string
}

export const hasOpenssl = () => Bun.which('openssl') !== null

export function makeCertificate(directory: string): Certificate {
  const [cert, key] = [join(directory, 'fullchain.pem'), join(directory, 'privkey.pem')]
  const { success, stderr } = Bun.spawnSync([
    ...['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
    ...['-nodes', '-days', '1', '-subj', '/CN=127.0.0.1', '-keyout', key, '-out', cert],
  ])
  if (!success) throw new Error(`openssl: ${stderr.toString()}`)
  return { cert, key }
}
