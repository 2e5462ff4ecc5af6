/** docs/vectors/: what goes over the wire, as JSON for tests of clients and backends in any language. */
import { signedHeaders } from '../../src/outgoing/signature.ts'
import { playResumes, type Step } from './resume-traces.ts'
import { play } from './transcripts.ts'

/** The lines of a conversation as steps. */
function stepsOf(text: string): Step[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [, who = '', arrow, json = ''] = /^(.+?) ([→←]) (\{.*\})$/.exec(line) ?? []
      if (arrow === undefined) return { note: line.replace(/^\(|\)$/g, '') }
      return { who, [arrow === '→' ? 'sends' : 'gets']: JSON.parse(json) }
    })
}

const secret = `whsec_${Buffer.from('ringwire-test-vector-key').toString('base64')}`
const oldSecret = `whsec_${Buffer.from('ringwire-earlier-vector!').toString('base64')}`
const id = 'msg_0b9f7a4e6a524f0e9d3c2f1b6c1d7e55'
const at = Date.parse('2026-03-02T09:05:00.000Z')
const body = JSON.stringify({
  type: 'call.ended',
  timestamp: '2026-03-02T09:05:00.000Z',
  data: { call_uuid: '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55', caller: { display_name: 'Ann Ωμέγα' } },
})

export interface SignatureVector {
  readonly name: string
  readonly valid: boolean
  /** Of the endpoint, as the receiver has it. */
  readonly secrets: readonly string[]
  /** The clock of the receiver, in seconds since the epoch. */
  readonly now: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Made by what signs the service's webhooks. */
export function signatures(): SignatureVector[] {
  const now = at / 1_000
  const signed = signedHeaders({ id, body }, [secret], at)
  const both = signedHeaders({ id, body }, [secret, oldSecret], at)
  const right = { valid: true, secrets: [secret], now, headers: signed, body }
  const wrong = { ...right, valid: false }
  return [
    { ...right, name: 'a webhook' },
    {
      ...right,
      name: 'a webhook while the secret changes: either secret verifies it',
      headers: both,
      secrets: [oldSecret],
    },
    { ...right, name: 'a receiver that knows two secrets', secrets: [oldSecret, secret] },
    { ...right, name: 'five minutes late', now: now + 300 },
    { ...wrong, name: 'more than five minutes late', now: now + 301 },
    { ...wrong, name: 'more than five minutes early', now: now - 301 },
    { ...wrong, name: 'another secret', secrets: [oldSecret] },
    { ...wrong, name: 'a body that was written anew', body: JSON.stringify(JSON.parse(body), null, 1) },
    { ...wrong, name: 'another id', headers: { ...signed, 'webhook-id': 'msg_another' } },
    { ...wrong, name: 'another timestamp', headers: { ...signed, 'webhook-timestamp': String(now + 1) } },
    { ...wrong, name: 'no version', headers: { ...signed, 'webhook-signature': signed['webhook-signature'].slice(3) } },
  ]
}

/** By the name of the file. */
export async function createVectors(): Promise<ReadonlyMap<string, string>> {
  const [talks, resumes] = [await play(), await playResumes()]
  const conversations = [...talks].map(([title, text]) => ({ title, steps: stepsOf(text) }))
  const files = { conversations, resumes, 'webhook-signatures': signatures() }
  return new Map(
    Object.entries(files).map(([name, vectors]) => [`${name}.json`, `${JSON.stringify(vectors, null, 2)}\n`]),
  )
}
