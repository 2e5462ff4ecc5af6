// What passes over the WebSocket, read without trusting it.

export type Data = Record<string, unknown>
export type CallError = { code: string; message: string; call_uuid?: string }
export type Envelope = { event: string; request_id?: string; data: Data; error?: CallError }

const isData = (value: unknown): value is Data => typeof value === 'object' && value !== null && !Array.isArray(value)

/** A string field, or '' where it is missing. */
export function text(data: Data, field: string): string {
  const value = data[field]
  return typeof value === 'string' ? value : ''
}

export function object(data: Data, field: string): Data {
  const value = data[field]
  return isData(value) ? value : {}
}

export function parseEnvelope(message: string): Envelope | undefined {
  let json: unknown
  try {
    json = JSON.parse(message)
  } catch {
    return undefined
  }
  if (!isData(json) || typeof json.event !== 'string') return undefined
  const data = object(json, 'data')
  const envelope: Envelope = { event: json.event, data }
  if (typeof json.request_id === 'string') envelope.request_id = json.request_id
  // call.error carries its error at the top level and again in data [ENV2].
  const error = isData(json.error) ? json.error : object(data, 'error')
  if (typeof error.code === 'string') {
    envelope.error = { code: error.code, message: text(error, 'message') }
    if (typeof error.call_uuid === 'string') envelope.error.call_uuid = error.call_uuid
  }
  return envelope
}
