// A service of the application's own, with its data in data/. With RINGWIRE_URL in .env it is not needed: delete this file
// and the lines of start.mjs that name it.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))

/** Resolves with the URL of the service when it listens. It ends with this process. */
export function startService({ product, keyId, secret }) {
  const env = {
    // Any port that is free.
    RINGWIRE_PORT: '0',
    RINGWIRE_DATA_DIR: here('data'),
    // This backend has no name and no TLS: on one machine that may be.
    RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
    ...process.env,
    RINGWIRE_BOOTSTRAP_KEYS: `${keyId}:${secret}:${product}`,
  }
  const child = spawn(here('node_modules/.bin/ringwire'), ['serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  process.on('exit', () => child.kill())
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit())
  child.on('exit', (code) => process.exit(code ?? 1))
  return new Promise((resolve) => {
    let said = ''
    child.stdout.on('data', (bytes) => {
      said += bytes
      const [, url] = /Ringwire listens on (\S+)\n/.exec(said) ?? []
      if (url !== undefined) resolve(url)
    })
  })
}

/** Has that service tell this backend of calls, and ask it about invites. Answers what it signs with. */
export async function tellBackend(ringwire, url) {
  const description = 'Made by npm start'
  const known = (await ringwire.webhooks.list()).find((endpoint) => endpoint.description === description)
  if (known !== undefined) await ringwire.webhooks.change(known.id, { url: `${url}/webhooks`, enabled: true })
  const { secret: webhook } =
    known === undefined
      ? await ringwire.webhooks.create({ url: `${url}/webhooks`, description })
      : await ringwire.webhooks.rotate(known.id)
  const { invite_secret: invite } = await ringwire.product.change({ invite_url: `${url}/invites` })
  return { webhook, invite }
}
