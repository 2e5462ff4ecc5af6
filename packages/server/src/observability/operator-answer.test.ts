import { expect, test } from 'bun:test'
import { json, jsonStream } from '../http/replies.ts'
import { StoreError } from '../ports/store-error.ts'
import { wholeAnswer } from './operator-answer.ts'

test('[ADM2] an answer goes on whole, with its status and headers', async () => {
  const long = { text: 'x'.repeat(40_000) }
  const answer = await wholeAnswer(json(409, long, { 'X-Own': 'yes' }))
  expect(answer).toMatchObject({ status: 409, headers: { 'x-own': 'yes', 'content-type': 'application/json' } })
  expect(JSON.parse(answer.body)).toEqual(long)
})

test('[ADM2] an answer that a store cuts in the middle is 503', async () => {
  async function* pieces() {
    yield '{"calls":['
    throw new StoreError('unavailable', 'the database is away')
  }
  const answer = await wholeAnswer(await jsonStream(pieces(), () => {}))
  expect(answer.status).toBe(503)
  expect(JSON.parse(answer.body)).toMatchObject({ success: false, error: { code: 'SERVICE_UNAVAILABLE' } })
})
