/** The result, the steps that are left, and the next two commands. It holds no secret. */
import { basename, dirname, relative } from 'node:path'

/** `found` is undefined where no service runs, or another one was wished; `connected` is what `connect` made there. */
export function report({ folder, cwd, flavour, product, url, found, connected, isOwn }) {
  const near = relative(cwd, folder)
  const shown = near === '' ? '.' : near.startsWith('..') ? folder : near
  const page = flavour === 'react' ? 'a page of React components' : 'a page without a framework'
  const said = [
    `Made ${shown}: ${page}, its backend, and .env with the secrets (product ${product}).`,
    ...(connected?.key === undefined
      ? withoutKey({ product, url, found, connected, isOwn })
      : withKey({ product, url, folder, found, connected })),
    '',
    'Next:',
    `  ${near === '' ? '' : `cd ${word(shown)} && `}npm install`,
    '  npm start',
  ]
  return `${said.join('\n')}\n`
}

function withKey({ product, url, folder, found, connected }) {
  const { key, webhook, invites } = connected
  const asOf = placeOf(found)
  const said = [`It uses the service on ${found.url}, where the key ${key.id} was made.`]
  if (webhook.id !== undefined) {
    said.push(
      `${webhook.isNew ? 'A webhook endpoint was made there, too' : 'A webhook endpoint with this URL got a new secret'}: ${webhook.id}, for ${url}/webhooks.`,
    )
  } else {
    said.push(
      `That service sends no webhooks to ${url}: ${webhook.why}`,
      'While you develop, forward them, in another terminal:',
      `  (. ${word(`${folder}/.env`)} && ${asOf}ringwire webhooks listen --product ${product} --forward-to ${url}/webhooks --secret "$WEBHOOK_SECRET")`,
    )
  }
  if (invites !== undefined)
    said.push(`The service asks ${url}/invites about each invite; while nobody answers there, calls ring.`)
  else
    said.push(
      `To decide on the invites of ${product}, which may have other backends, have its secret printed, and put it into .env as INVITE_SECRET:`,
      `  ${asOf}ringwire products set ${product} --invite-url ${url}/invites --invite-failure allow`,
    )
  return said
}

function withoutKey({ product, url, found, connected, isOwn }) {
  if (found === undefined) return ['npm start also starts a service, with its data in this folder.']
  const asOf = placeOf(found)
  return [
    isOwn
      ? `A service runs on ${found.url}, and no key could be made there: npm start starts another one, with its data in this folder.`
      : `No key could be made at the service on ${found.url}.`,
    connected?.why ?? 'Its data was not found: give its folder as --service FOLDER.',
    `To use it, set RINGWIRE_URL=${found.url} in .env, and RINGWIRE_KEY_ID, RINGWIRE_KEY_SECRET and WEBHOOK_SECRET to what these print, where the service runs:`,
    `  ${asOf}ringwire keys create --product ${product}`,
    `  ${asOf}ringwire webhooks create ${url}/webhooks --product ${product}`,
  ]
}

/** Beside the data of the service; its command as it was found, or as npm finds it. */
function placeOf({ dataDir, command }) {
  if (dataDir === undefined) return 'npx '
  if (command === undefined) return `cd ${word(basename(dataDir) === 'data' ? dirname(dataDir) : dataDir)} && npx `
  return `RINGWIRE_DATA_DIR=${word(dataDir)} ${word(dirname(command))}/`
}

/** As a shell reads it as one word. */
function word(text) {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
