import { type ErrorCode, errors } from '@ringwire/protocol/errors'
import { type ServerEventName, serverEvents } from '@ringwire/protocol/server-events'
import { createValidator } from '@ringwire/protocol/validate'

/** Close codes of the protocol that a fuzzed socket can meet, and of RFC 6455 for frames that are wrong. */
const closeCodes = new Set([1000, 1001, 1002, 1003, 1005, 1006, 1007, 1009, 1011, 4008, 4400, 4401, 4408, 4409, 4429])

/** Statuses with which Bun itself refuses bytes that are not a request, without a body. */
const bareStatuses = new Set([400, 414, 426, 431, 501, 505])

/** Codes that say that something is wrong with the service, not with what it was sent. */
const neverCodes: ReadonlySet<string> = new Set(['INTERNAL_ERROR', 'CALL_HISTORY_FAILED', 'SERVICE_UNAVAILABLE'])

/** What was sent and answered, and everything that no document explains. */
export class Findings {
  sent = 0
  /** How often each code, status and event came. */
  readonly seen = new Map<string, number>()
  readonly unexpected: string[] = []
  private readonly validators = new Map(
    Object.entries(serverEvents).map(([event, { data }]) => [event, createValidator(data)] as const),
  )

  private note(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1)
  }

  private surprise(what: string, input: Uint8Array | string): void {
    if (this.unexpected.length < 20) this.unexpected.push(`${what}\n  for ${shown(input)}`)
  }

  /** One text of the service; `input` is what was sent last. */
  message(text: string, input: Uint8Array | string): void {
    const message = JSON.parse(text) as { event: ServerEventName; data?: unknown; error?: { code: string } }
    this.note(message.event)
    const checked = this.validators.get(message.event)?.(message.data)
    if (checked === undefined) this.surprise(`the event ${message.event}`, input)
    else if (!checked.ok) this.surprise(`${message.event}: ${checked.field} ${checked.message}`, input)
    if (message.event === 'call.error') this.code(message.error?.code ?? '', 'ws', undefined, input)
  }

  /** `mayEcho`: the client may have sent a close frame, which is answered with its own code. */
  closed(code: number, input: Uint8Array | string, mayEcho: boolean): void {
    const isEcho = mayEcho && ((code >= 3000 && code < 5000) || (code >= 1000 && code < 1015))
    this.note(closeCodes.has(code) ? `close ${code}` : 'close of their own')
    if (!closeCodes.has(code) && !isEcho) this.surprise(`close code ${code}`, input)
  }

  answer(status: number, body: string, input: Uint8Array | string): void {
    this.note(`HTTP ${status}`)
    if (body === '') {
      const isHead = shown(input).startsWith('"HEAD ')
      const fine = status < 400 || isHead || bareStatuses.has(status)
      if (!fine) this.surprise(`HTTP ${status} without a body`, input)
      return
    }
    const { success, error, ok } = JSON.parse(body) as { success?: boolean; error?: { code: string }; ok?: boolean }
    if (status < 400) return
    // What /readyz says of a store that did not answer within a second: where the machine is busy that is so [HEALTH1].
    if (status === 503 && ok === false) return
    if (success !== undefined && error !== undefined) this.code(error.code, 'rest', status, input)
    else this.surprise(`HTTP ${status}: ${body}`, input)
  }

  private code(code: string, where: 'ws' | 'rest', status: number | undefined, input: Uint8Array | string): void {
    this.note(code)
    const definition = errors[code as ErrorCode] as (typeof errors)['INTERNAL_ERROR'] | undefined
    if (definition === undefined || (definition.where !== 'both' && definition.where !== (where as string))) {
      this.surprise(`the code ${code} by ${where}`, input)
    } else if (status !== undefined && definition.status !== (status as number)) {
      this.surprise(`${code} with status ${status}`, input)
    } else if (neverCodes.has(code)) this.surprise(`the code ${code}`, input)
  }

  /** A line for the report. */
  summary(): string {
    return [...this.seen]
      .sort(([, a], [, b]) => b - a)
      .map(([what, count]) => `${what} ${count}`)
      .join(', ')
  }
}

function shown(input: Uint8Array | string): string {
  const text = typeof input === 'string' ? input : Buffer.from(input).toString('latin1')
  return JSON.stringify(text.length > 600 ? `${text.slice(0, 600)}… (${text.length})` : text)
}
