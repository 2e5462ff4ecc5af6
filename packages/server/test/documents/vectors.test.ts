import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { webhooks } from '@ringwire/server-sdk'
import { projectRoot } from '@ringwire/testkit/documents'
import { Webhook } from 'standardwebhooks'
import { createVectors, signatures } from './vectors.ts'

/* `npx bun packages/server/test/documents/write.ts` writes what the service says now. */
const folder = join(projectRoot, 'docs/vectors')

test('docs/vectors are what the service says', async () => {
  const vectors = await createVectors()
  expect(readdirSync(folder).sort()).toEqual([...vectors.keys()].sort())
  for (const [name, text] of vectors)
    expect({ name, text: readFileSync(join(folder, name), 'utf8') }).toEqual({ name, text })
}, 240_000)

test('the vectors of signatures are valid where the SDK for backends says so', () => {
  for (const { name, valid, secrets, now, headers, body } of signatures()) {
    const verified = () => webhooks.verify({ payload: body, headers, secret: secrets, now: now * 1_000 })
    if (valid) expect([name, verified().type]).toEqual([name, 'call.ended'])
    else expect(verified).toThrow()
  }
})

test('the signatures are those of Standard Webhooks, by its own library', () => {
  const signed = signatures().filter(({ valid, secrets }) => valid && secrets.length === 1)
  expect(signed.length).toBeGreaterThan(2)
  for (const { secrets, headers, body } of signed) {
    const time = new Date(Number(headers['webhook-timestamp']) * 1_000)
    const expected = new Webhook(secrets[0] ?? '').sign(headers['webhook-id'] ?? '', time, body)
    expect(headers['webhook-signature']?.split(' ')).toContain(expected)
  }
})
