import { createHmac, randomBytes } from 'node:crypto'

/** Secrets and signatures of Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks, symmetric). */
const prefix = 'whsec_'

/** 24 random bytes, which that specification asks for at least. */
export function newWebhookSecret(): string {
  return prefix + randomBytes(24).toString('base64')
}

export interface Signed {
  readonly id: string
  /** Of the attempt, in seconds since the epoch. */
  readonly timestamp: number
  readonly body: string
}

/** The value of `webhook-signature`: one signature for each secret. */
export function signWebhook({ id, timestamp, body }: Signed, secrets: readonly string[]): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(prefix.length), 'base64')
      return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
    })
    .join(' ')
}

/** The headers of a signed request; `at`: of the attempt, in ms since the epoch. */
export function signedHeaders({ id, body }: Pick<Signed, 'id' | 'body'>, secrets: readonly string[], at: number) {
  const timestamp = Math.floor(at / 1_000)
  return {
    'content-type': 'application/json',
    'user-agent': 'Ringwire',
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signWebhook({ id, timestamp, body }, secrets),
  }
}
