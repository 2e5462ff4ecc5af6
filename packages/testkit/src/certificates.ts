import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificates {
  /** PEM files: an authority, and what it signed for a server at 127.0.0.1 and localhost, and for a client. */
  readonly ca: string
  readonly server: { readonly cert: string; readonly key: string }
  readonly client: { readonly cert: string; readonly key: string }
  /** An authority that signed neither. */
  readonly otherCa: string
  remove(): Promise<void>
}

/** Throw-away certificates, made by openssl; nothing of them stays. */
export async function makeCertificates(): Promise<Certificates> {
  const directory = await mkdtemp(join(tmpdir(), 'ringwire-certificates-'))
  const file = (name: string) => join(directory, name)
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const authority = async (name: string) => {
    const files = ['-keyout', file(`${name}.key`), '-out', file(`${name}.pem`)]
    await openssl('req', '-x509', '-days', '1', '-subj', `/CN=${name}`, ...newKey, ...files)
    return file(`${name}.pem`)
  }
  const [ca, otherCa] = [await authority('authority'), await authority('other')]
  const signed = async (name: string, names: string) => {
    const [cert, key, request, extensions] = ['pem', 'key', 'csr', 'ext'].map((end) => file(`${name}.${end}`)) as [
      string,
      string,
      string,
      string,
    ]
    await writeFile(extensions, `subjectAltName=${names}\n`)
    await openssl('req', '-subj', `/CN=${name}`, ...newKey, '-keyout', key, '-out', request)
    const by = ['-CA', ca, '-CAkey', file('authority.key'), '-CAcreateserial', '-extfile', extensions]
    await openssl('x509', '-req', '-days', '1', '-in', request, '-out', cert, ...by)
    return { cert, key }
  }
  return {
    ca,
    otherCa,
    server: await signed('server', 'DNS:localhost,IP:127.0.0.1'),
    client: await signed('client', 'DNS:client.test'),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

async function openssl(...args: readonly string[]): Promise<void> {
  const child = Bun.spawn(['openssl', ...args], { stdout: 'ignore', stderr: 'pipe' })
  const said = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`openssl ${args[0]}: ${said}`)
}
