/** One message of the wire, as it is read and written here [ENV1]. */
export interface Envelope {
  readonly event: string
  readonly request_id?: string | undefined
  readonly data?: Readonly<Record<string, unknown>> | undefined
}

export function readEnvelope(text: string): Envelope | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const isEnvelope = typeof value === 'object' && value !== null && typeof (value as Envelope).event === 'string'
    return isEnvelope ? (value as Envelope) : undefined
  } catch {
    return undefined
  }
}
