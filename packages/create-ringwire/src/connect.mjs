/**
 * Makes what an application needs at a service that runs: a key by its command, then a webhook endpoint and the decision on
 * invites with that key.
 *
 *   connect({ found, product, url, env })  → { key, webhook, invites }; `key` is undefined where none could be made, and `why` says so
 *   takeBack(connected)                    → the key is disabled again, and the endpoint is gone
 */
import { spawnSync } from 'node:child_process'

/** How long the service may take to hear of a new key: it looks every second. In ms. */
const hearingMs = 10_000
const askingMs = 5_000

export async function connect({ found, product, url, env }) {
  const made = makeKey({ found, product, env })
  if (made.key === undefined) return made
  const ask = asking(found.url, made.key)
  if (!(await isHeard(ask))) {
    made.disable()
    return { why: 'The service does not know the key that was made in that data.' }
  }
  const webhook = await makeEndpoint(ask, `${url}/webhooks`)
  const invites =
    made.isNewProduct && webhook.secret !== undefined ? await decideOnInvites(ask, `${url}/invites`) : undefined
  return { key: made.key, webhook, invites, disable: made.disable, ask }
}

export async function takeBack({ webhook, ask, disable }) {
  if (webhook.isNew) await ask('DELETE', `webhooks/${webhook.id}`)
  disable()
}

/** Answers neither a key nor a reason where no data was found. */
function makeKey({ found, product, env }) {
  const { dataDir, command, hasDatabase } = found
  if (dataDir === undefined && !hasDatabase) return {}
  if (command === undefined) return { why: 'The command ringwire was not found.' }
  const settings = dataDir === undefined ? env : { ...env, DATABASE_URL: '', RINGWIRE_DATA_DIR: dataDir }
  const run = (...args) => {
    const { status, stdout, stderr } = spawnSync(command, args, { env: settings, encoding: 'utf8' })
    // Its output may hold a secret; its complaints on stderr do not.
    return status === 0 ? { out: stdout } : { why: lastLine(stderr) }
  }
  const listed = run('keys', 'list', '--json')
  if (listed.out === undefined) return { why: listed.why }
  const isNewProduct = !JSON.parse(listed.out).some(({ products }) => products.includes(product))
  const created = run('keys', 'create', '--product', product, '--json')
  if (created.out === undefined) return { why: created.why }
  const { key_id: id, secret } = JSON.parse(created.out)
  return { key: { id, secret }, isNewProduct, disable: () => run('keys', 'disable', id) }
}

const lastLine = (text) => text?.trim().split('\n').at(-1) || 'The command ringwire failed.'

function asking(service, { id, secret }) {
  const headers = { 'Content-Type': 'application/json', 'X-SVC-Product-Key-ID': id, 'X-SVC-Product-Secret': secret }
  return async (method, path, body) => {
    const response = await fetch(`${service}/v1/server/${path}`, {
      method,
      headers,
      signal: AbortSignal.timeout(askingMs),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
  }
}

async function isHeard(ask) {
  const end = Date.now() + hearingMs
  for (;;) {
    const { status } = await ask('GET', 'product')
    if (status !== 401) return status === 200
    if (Date.now() > end) return false
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

/** One with the same URL gets a new secret: two would send everything twice. */
async function makeEndpoint(ask, url) {
  const listed = await ask('GET', 'webhooks')
  const known = listed.body.data?.find((endpoint) => endpoint.url === url)
  const { status, body } =
    known === undefined
      ? await ask('POST', 'webhooks', { url, description: 'Made by create-ringwire' })
      : await ask('POST', `webhooks/${known.id}/rotate`)
  if (status >= 300) return { why: body.error?.message ?? `The service answered ${status}.` }
  return { id: known?.id ?? body.id, secret: body.secret, isNew: known === undefined }
}

/** Calls still ring while the application does not run. */
async function decideOnInvites(ask, url) {
  const { status, body } = await ask('PATCH', 'product', { invite_url: url, invite_failure: 'allow' })
  return status === 200 ? { secret: body.invite_secret } : undefined
}
