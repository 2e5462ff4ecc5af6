/**
 * The words after `npm create ringwire`.
 *
 *   readArguments(args, env)  → { folder, flavour, product, service, packages, port, yes, help }; what was not given is undefined
 *   productOf(folder)         → the product that is offered: the name of the folder
 *   checkProduct(name)        → the name, or a UsageError
 */
import { basename } from 'node:path'
import { parseArgs } from 'node:util'

export const usage = `Usage: npm create ringwire [FOLDER] [-- OPTIONS]

Makes a folder with an application of its own: a page with calls, and its backend.
What is not given is asked.

  --react           a page of React components
  --plain           a page without a framework
  --product NAME    what the application is called at Ringwire (default: the name of the folder)
  --service PLACE   the service to use: its URL, or the folder that it runs in
                    (default: one that is found on this machine, or one of the application's own)
  --port PORT       where the application listens (default: 3000)
  --packages PATH   take the packages from this folder, where npm run pack put them
                    (default: RINGWIRE_PACKAGES; without it, from the registry)
  --yes             ask nothing
  --help            print this
`

/** Something was typed that cannot be meant; the message says what. */
export class UsageError extends Error {}

const options = {
  react: { type: 'boolean' },
  plain: { type: 'boolean' },
  product: { type: 'string' },
  service: { type: 'string' },
  port: { type: 'string' },
  packages: { type: 'string' },
  yes: { type: 'boolean', short: 'y' },
  help: { type: 'boolean', short: 'h' },
}

export function readArguments(args, env) {
  const { values, positionals } = parse(args)
  if (positionals.length > 1)
    throw new UsageError(`Give one folder, not ${positionals.length}: ${positionals.join(', ')}`)
  if (values.react && values.plain) throw new UsageError('Give --react or --plain, not both.')
  return {
    folder: positionals[0],
    flavour: values.react ? 'react' : values.plain ? 'plain' : undefined,
    product: values.product === undefined ? undefined : checkProduct(values.product),
    service: values.service,
    packages: values.packages ?? (env.RINGWIRE_PACKAGES || undefined),
    port: checkPort(values.port ?? '3000'),
    yes: values.yes === true,
    help: values.help === true,
  }
}

function parse(args) {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    // Its message goes on with advice on `--` that is of no use here.
    throw new UsageError(error.message.split('. ')[0])
  }
}

/** Ringwire takes more than that; these need no quotes in a shell and none in `.env`. */
export function checkProduct(name) {
  if (/^[A-Za-z0-9][\w.-]{0,63}$/.test(name)) return name
  throw new UsageError(
    'A product is 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter or digit.',
  )
}

function checkPort(text) {
  if (/^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535) return Number(text)
  throw new UsageError('--port is a number from 1 to 65535.')
}

export function productOf(folder) {
  const name = basename(folder)
    .replaceAll(/[^\w.-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 64)
  return name === '' ? 'phone' : name
}
