import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createPrivateKey } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { type Certificates, makeCertificates } from '@ringwire/testkit/certificates'
import { tlsProblems } from './tls-files.ts'

let made: Certificates
beforeAll(async () => {
  made = await makeCertificates()
})
afterAll(() => made.remove())

test('a certificate and its key are good, also in one file, and with the authority after it', () => {
  const { cert, key } = made.server
  expect(tlsProblems(cert, key)).toEqual([])
  const [chain, both] = [`${cert}.chain`, `${cert}.both`]
  writeFileSync(chain, readFileSync(cert, 'utf8') + readFileSync(made.ca, 'utf8'))
  writeFileSync(both, readFileSync(key, 'utf8') + readFileSync(cert, 'utf8'), { mode: 0o600 })
  expect(tlsProblems(chain, key)).toEqual([])
  expect(tlsProblems(both, both)).toEqual([])
})

test('a key of another certificate, and a chain that begins with the authority, are named', () => {
  const { cert, key } = made.server
  const chain = `${cert}.reversed`
  writeFileSync(chain, readFileSync(made.ca, 'utf8') + readFileSync(cert, 'utf8'))
  for (const [first, second] of [
    [cert, made.client.key],
    [chain, key],
  ] as const) {
    expect(tlsProblems(first, second)).toEqual([
      `RINGWIRE_TLS_KEY (${second}) is not the key of the first certificate in RINGWIRE_TLS_CERT (${first})`,
    ])
  }
})

test('[LOG1] what is no certificate or no key is named, and nothing of it is shown', () => {
  const { cert, key } = made.server
  expect(tlsProblems(key, cert)).toEqual([
    `RINGWIRE_TLS_CERT holds no certificate that can be read (PEM): ${key}`,
    `RINGWIRE_TLS_KEY holds no private key that can be read (PEM): ${cert}`,
  ])
  const encrypted = `${key}.encrypted`
  const locked = { format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' } as const
  writeFileSync(encrypted, createPrivateKey(readFileSync(key, 'utf8')).export(locked), { mode: 0o600 })
  expect(tlsProblems(cert, encrypted)).toEqual([
    `RINGWIRE_TLS_KEY holds an encrypted key; it is read without a passphrase: ${encrypted}`,
  ])
})
