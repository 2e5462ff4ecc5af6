/** The demo for a phone in the same network: https with a certificate that `serve --lan` makes, and a call over it. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openBrowser } from '@ringwire/testkit/browser'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from '@ringwire/testkit/process'
import type { Browser } from 'playwright-core'
import { connect, goOnlineTogether } from './support/participant.ts'

const main = new URL('../../server/src/main.ts', import.meta.url).pathname
const data = await makeTemporaryDirectory()
let service: RunningProcess
let browser: Browser
/** Not a loopback address: what a phone would open. */
let url: string

async function serve(): Promise<void> {
  service = startProcess([process.execPath, main, 'serve', '--lan'], {
    RINGWIRE_PORT: '0',
    RINGWIRE_DATA_DIR: data.path,
    // As `npm start` sets it.
    RINGWIRE_DEMO: '1',
  })
  ;[, url = ''] = await service.waitFor(/open\n {2}(https:\S+)\/demo\/\n.*warns once/s)
}

beforeAll(async () => {
  await serve()
  browser = await openBrowser()
}, 240_000)
afterAll(async () => {
  await browser?.close()
  await service?.stop()
  await data.remove()
})

const ask = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${url}${path}`, { headers, tls: { rejectUnauthorized: false } })

test('two browsers at the address in the network: a video call', async () => {
  expect(new URL(url).hostname).not.toStartWith('127.')
  const { customer, agent, close } = await goOnlineTogether(browser, url)
  await connect(customer, agent, 'video')
  expect(await customer.page.evaluate('isSecureContext')).toBe(true)
  await close()
}, 240_000)

test('no name of a site leads to the demo, and no proxy', async () => {
  expect((await ask('/demo/')).status).toBe(200)
  expect((await ask('/demo/', { host: 'evil.example' })).status).toBe(403)
  expect((await ask('/demo/', { 'x-forwarded-for': '192.168.1.31' })).status).toBe(403)
})

test('the certificate is for that address, its key for its owner alone, and both stay', async () => {
  const [cert, key] = [join(data.path, 'lan-cert.pem'), join(data.path, 'lan-key.pem')]
  const before = readFileSync(cert, 'utf8')
  expect(new X509Certificate(before).checkIP(new URL(url).hostname)).toBe(new URL(url).hostname)
  expect((statSync(key).mode & 0o077).toString(8)).toBe('0')
  await service.stop()
  await serve()
  expect(readFileSync(cert, 'utf8')).toBe(before)
})
