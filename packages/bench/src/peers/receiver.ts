// Who hears of calls: takes webhooks, pushes and spans, notes when each came, and answers at once. It reports everything that came
// on request. Asked about an invite, it refuses it at once, or never answers.
interface Heard {
  webhooks: number
  /** Came a second time, or before an older one of its call. */
  wrong: number
  /** When the last one came, in ms since the epoch. */
  lastAt: number
  /** From the time of the event until it was here, in microseconds; those since the last question. */
  latencies: number[]
}

const heard: Heard = { webhooks: 0, wrong: 0, lastAt: 0, latencies: [] }
const ids = new Set<string>()
const versions = new Map<string, number>()
/** When the first push of each topic came. */
const pushes = new Map<string, number>()
let spans = 0
let waiting: { isDone: () => boolean; resolve: () => void }[] = []

const now = () => performance.timeOrigin + performance.now()

function until(isDone: () => boolean): Promise<void> {
  if (isDone()) return Promise.resolve()
  return new Promise((resolve) => waiting.push({ isDone, resolve }))
}

async function took(request: Request): Promise<Response> {
  const at = now()
  const topic = request.headers.get('topic')
  const text = await request.text()
  if (topic === null) tookWebhook(at, request.headers.get('webhook-id') ?? '', text)
  else if (!pushes.has(topic)) pushes.set(topic, at)
  waiting = waiting.filter(({ isDone, resolve }) => !isDone() || resolve())
  return new Response(null, { status: topic === null ? 204 : 201 })
}

function tookWebhook(at: number, id: string, text: string): void {
  const { timestamp, data } = JSON.parse(text)
  const last = versions.get(data.call_uuid) ?? 0
  if (id === '' || ids.has(id) || data.version < last) heard.wrong++
  ids.add(id)
  versions.set(data.call_uuid, data.version)
  heard.webhooks++
  heard.lastAt = at
  heard.latencies.push(Math.round((at - Date.parse(timestamp)) * 1000))
}

async function tookSpans(request: Request): Promise<Response> {
  spans += (await request.text()).split('"traceId":"').length - 1
  return Response.json({})
}

/** Until the service gives up. */
function hang({ signal }: Request): Promise<Response> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(new Response(null, { status: 504 }))))
}

function asked(request: Request): Promise<Response> | Response {
  const { pathname } = new URL(request.url)
  if (pathname === '/v1/traces') return tookSpans(request)
  if (pathname === '/invites/hanging') return hang(request)
  return pathname === '/invites/answering' ? Response.json({ decision: 'refuse' }) : took(request)
}

async function answer(url: URL): Promise<Response> {
  const [, what, which = ''] = url.pathname.split('/')
  if (what === 'pushes') {
    await until(() => pushes.has(which))
    return Response.json({ at: pushes.get(which) })
  }
  if (what === 'spans') return Response.json({ spans })
  await until(() => heard.webhooks >= Number(which))
  return Response.json({ ...heard, latencies: heard.latencies.splice(0) })
}

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 60,
  fetch: (request) => (request.method === 'POST' ? asked(request) : answer(new URL(request.url))),
})
console.log(`listens on http://127.0.0.1:${server.port}`)
