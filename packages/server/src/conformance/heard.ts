/** An envelope as it came. */
export interface Heard {
  readonly event: string
  readonly request_id?: string
  readonly seq?: number
  readonly version?: number
  readonly success?: boolean
  // biome-ignore lint/suspicious/noExplicitAny: whatever a service sends is looked at field by field.
  readonly data: any
  // biome-ignore lint/suspicious/noExplicitAny: the same.
  readonly error?: any
}

/** Whether a message is about this call. */
export const about = (callUuid: string) => (heard: Heard) => heard.data?.call_uuid === callUuid

/** Undefined if the text is not an envelope. */
export function envelopeOf(text: string): Heard | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const isEnvelope = typeof value === 'object' && value !== null && typeof (value as Heard).event === 'string'
    return isEnvelope ? (value as Heard) : undefined
  } catch {
    return undefined
  }
}
