const maxBodyBytes = 4096
/** Only a proxy sends these, and behind one everybody looks like this machine. */
const forwarding = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'via']

export function isForwarded(headers: Headers): boolean {
  return forwarding.some((name) => headers.has(name))
}

/** An unknown address is not loopback: the demo fails closed. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false
  const plain = address.toLowerCase().replace(/^::ffff:/, '')
  return plain === '::1' || /^127(\.\d{1,3}){3}$/.test(plain)
}

/**
 * The name that the browser believes it talks to. A hostile site can point its own name at 127.0.0.1 (DNS rebinding),
 * but it cannot make the browser send another Host header.
 */
export function isLoopbackHost(host: string | null): boolean {
  const match = /^(?:\[([\da-f:.]+)\]|([a-z\d.-]+))(?::\d{1,5})?$/.exec(host?.toLowerCase() ?? '')
  const name = match?.[1] ?? match?.[2] ?? ''
  return name === 'localhost' || name.endsWith('.localhost') || isLoopbackAddress(name)
}

/** Networks around this machine: which addresses are in them, and which of them are its own. */
export interface Networks {
  readonly addresses: readonly string[]
  has(address: string): boolean
}

/** Whether a request comes from these networks and was meant for this machine's own address there, no name of a site. */
export function isFromNetworks(networks: Networks, address: string | undefined, host: string | null): boolean {
  const name = /^([\d.]+)(?::\d{1,5})?$/.exec(host ?? '')?.[1]
  return address !== undefined && networks.has(address) && name !== undefined && networks.addresses.includes(name)
}

/** Every browser sends Origin with a POST; a caller without one is no browser and carries nobody's authority. */
export function isSameOriginPost(request: Request): boolean {
  const origin = request.headers.get('origin')
  const site = request.headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin') return false
  return origin === null || URL.parse(origin)?.host === request.headers.get('host')?.toLowerCase()
}

/** The request's JSON object; anything else reads as an empty one, whose fields are then missing. */
export async function readJsonObject(request: Request): Promise<Record<string, unknown>> {
  const length = Number(request.headers.get('content-length') ?? Number.NaN)
  if (!(length <= maxBodyBytes)) return {}
  try {
    const body: unknown = await request.json()
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : {}
  } catch {
    return {}
  }
}

export function answerJson(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  const always = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
  return Response.json(body, { status, headers: { ...always, ...headers } })
}
