import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type ConnectionOptions, connect } from 'node:tls'
import { makeCertificates } from '@ringwire/testkit/certificates'
import { type Box, createBox } from './command.ts'

let box: Box
beforeEach(() => {
  box = createBox()
})
afterEach(() => box.clean())

/** The cipher that the two agree on; undefined where they do not agree. */
function agreed(url: string, options: ConnectionOptions): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false, ...options })
  socket.on('secureConnect', () => {
    resolve(`${socket.getProtocol()} ${socket.getCipher()?.name}`)
    socket.destroy()
  })
  socket.on('error', () => resolve(undefined))
  socket.on('close', () => resolve(undefined))
  return promise
}

test('TLS of the service: 1.3, and of 1.2 only forward-secret ciphers', async () => {
  const [key, cert] = [join(box.dataDir, 'key.pem'), join(box.dataDir, 'cert.pem')]
  const made = Bun.spawnSync(
    `openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1 -keyout ${key} -out ${cert}`.split(' '),
  )
  expect(made.exitCode).toBe(0)
  const { url } = await box.serve({ env: { RINGWIRE_TLS_CERT: cert, RINGWIRE_TLS_KEY: key } })
  expect(await agreed(url, {})).toStartWith('TLSv1.3 ')
  const old = { maxVersion: 'TLSv1.2' } as const
  expect(await agreed(url, { ...old, ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' })).toStartWith('TLSv1.2 ')
  // The key of the certificate would be enough to open a recording.
  for (const ciphers of ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'AES128-SHA', 'ECDHE-RSA-AES128-SHA']) {
    expect([ciphers, await agreed(url, { ...old, ciphers })]).toEqual([ciphers, undefined])
  }
})

test('a certificate that is not trusted is named as such by the commands that connect', async () => {
  const certificates = await makeCertificates()
  try {
    const { cert, key } = certificates.server
    const everywhere = { RINGWIRE_HOST: '0.0.0.0', RINGWIRE_TLS_CERT: cert, RINGWIRE_TLS_KEY: key }
    const { port } = new URL((await box.serve({ env: everywhere })).url)
    const url = `https://127.0.0.1:${port}`
    const made = await box.run('keys create --product shop --json')
    const { key_id, secret } = JSON.parse(made.out)
    const env = { RINGWIRE_KEY_ID: key_id, RINGWIRE_KEY_SECRET: secret }
    const commands = [
      `participant show customer ann --product shop --url ${url}`,
      `phone --product shop --user ann --role customer --peer-role agent --url ${url}`,
    ]
    for (const command of commands) {
      const refused = await box.run(command, { env })
      expect([refused.code, refused.out]).toEqual([1, ''])
      expect(refused.err).toMatch(
        new RegExp(`^The certificate of ${url} is not trusted \\([A-Z_]+\\)\\. .*NODE_EXTRA_CA_CERTS`, 'm'),
      )
      const trusted = { ...env, NODE_EXTRA_CA_CERTS: certificates.ca }
      expect(await box.run(command, { env: trusted })).toMatchObject({ code: 0 })
      // Its authority is known, and it has another name.
      const other = command.replace('127.0.0.1', '127.0.0.2')
      expect(await box.run(other, { env: trusted })).toMatchObject({
        code: 1,
        err: expect.stringContaining(`The certificate of https://127.0.0.2:${port} is of another name.`),
      })
    }
  } finally {
    await certificates.remove()
  }
})
