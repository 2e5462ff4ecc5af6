import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Box, createBox } from './command.ts'

let box: Box
beforeEach(() => {
  box = createBox()
})
afterEach(() => box.clean())

const mint = 'token --product shop --user ann --role customer --peer-role agent --json'
/** Another terminal, where the port of the service is not set. */
const elsewhere = { RINGWIRE_PORT: '' }
const file = () => join(box.dataDir, 'serve.url')

async function printedUrl(env: Record<string, string>): Promise<string> {
  const { code, out, err } = await box.run(mint, { env })
  expect([code, err]).toEqual([0, ''])
  return JSON.parse(out).ws_url
}

const wsUrl = (url: string) => `${url.replace('http', 'ws')}/v1/ws`

test('commands of another terminal find the service of their data directory, whatever its port', async () => {
  const { key_id, secret } = JSON.parse((await box.run('keys create --product shop --json')).out)
  const service = await box.serve()
  expect(await printedUrl(elsewhere)).toBe(wsUrl(service.url))
  expect(await printedUrl({ RINGWIRE_PORT: '0' })).toBe(wsUrl(service.url))
  const key = { RINGWIRE_KEY_ID: key_id, RINGWIRE_KEY_SECRET: secret }
  expect(await box.run('call list --product shop --json', { env: { ...elsewhere, ...key } })).toMatchObject({ code: 0 })
  const phone = 'phone --product shop --user ann --role customer --peer-role agent'
  const called = await box.run(phone, { env: elsewhere, input: 'wait auth.ok\n' })
  expect([called.code, called.out]).toEqual([0, expect.stringContaining('"auth.ok"')])
})

test('what is set counts before the address of the data directory: RINGWIRE_URL, RINGWIRE_PUBLIC_URL, RINGWIRE_PORT', async () => {
  await box.run('keys create --product shop')
  await box.serve()
  const port = { RINGWIRE_PORT: '9' }
  expect(await printedUrl(port)).toBe('ws://127.0.0.1:9/v1/ws')
  const publicUrl = { ...port, RINGWIRE_PUBLIC_URL: 'https://calls.example.com' }
  expect(await printedUrl(publicUrl)).toBe('wss://calls.example.com/v1/ws')
  expect(await printedUrl({ ...publicUrl, RINGWIRE_URL: 'http://127.0.0.1:10/calls' })).toBe(
    'ws://127.0.0.1:10/calls/v1/ws',
  )
  expect(await box.run(mint, { env: { RINGWIRE_URL: '127.0.0.1:8080' } })).toMatchObject({ code: 2, out: '' })
  // The service that uses a database is another one than that of this directory.
  const database = {
    ...elsewhere,
    DATABASE_URL: 'postgres://127.0.0.1:1/calls',
    RINGWIRE_BOOTSTRAP_KEYS: 'k:0123456789012345678901234567890123:shop',
  }
  expect(await printedUrl(database)).toBe('ws://127.0.0.1:8080/v1/ws')
})

test('only the owner reads the address; it is gone after a stop, and after kill -9 nobody believes it', async () => {
  await box.run('keys create --product shop')
  const first = await box.serve()
  if (process.platform !== 'win32') expect(statSync(file()).mode & 0o777).toBe(0o600)
  first.signal('SIGTERM')
  await first.ended
  expect(existsSync(file())).toBe(false)
  expect(await printedUrl(elsewhere)).toBe('ws://127.0.0.1:8080/v1/ws')
  const second = await box.serve()
  second.signal('SIGKILL')
  await second.ended
  expect(existsSync(file())).toBe(true)
  expect(await printedUrl(elsewhere)).toBe('ws://127.0.0.1:8080/v1/ws')
  // The text there is not an address: the file was written by something else.
  writeFileSync(file(), `${process.pid} http://127.0.0.1:1/elsewhere\n`)
  expect(await printedUrl(elsewhere)).toBe('ws://127.0.0.1:8080/v1/ws')
  const third = await box.serve()
  expect(await printedUrl(elsewhere)).toBe(wsUrl(third.url))
})
