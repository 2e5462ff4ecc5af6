/**
 * `npm create ringwire`: asks, makes a key where a service runs, writes the folder, and says what it did.
 *
 *   main({ args, env, cwd, input, output, err })  → the exit code: 0 done, 1 failed, 2 wrong usage, 130 Ctrl-C
 *
 * It makes nothing before all questions are answered, and prints no secret.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { checkProduct, productOf, readArguments, UsageError, usage } from './arguments.mjs'
import { connect, takeBack } from './connect.mjs'
import { findService } from './find-service.mjs'
import { requireEmpty, writeFolder } from './folder.mjs'
import { findPackages } from './packages.mjs'
import { Interrupted, openQuestions } from './questions.mjs'
import { report } from './report.mjs'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

export async function main({ args, env, cwd, input, output, err }) {
  try {
    const given = readArguments(args, env)
    if (given.help) output.write(usage)
    else output.write(await create(await decide(given, { env, cwd, input, output }), { env, cwd }))
    return 0
  } catch (error) {
    if (error instanceof Interrupted) {
      err(`\n${error.message || 'Nothing was made.'}\n`)
      return error.code
    }
    err(`${error.message}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}

/** All that has to be known before anything is made. */
async function decide(given, { env, cwd, input, output }) {
  const questions = given.yes ? undefined : openQuestions({ input, output })
  try {
    const name = given.folder ?? (await questions?.text('Folder', 'ringwire-app', checked(cwd))) ?? 'ringwire-app'
    const folder = resolve(cwd, name)
    requireEmpty(folder)
    const flavour = given.flavour ?? (await questions?.choice('Page', ['react', 'plain'])) ?? 'react'
    const packages = given.packages === undefined ? undefined : resolve(cwd, given.packages)
    const tarballs = packages === undefined ? undefined : findPackages(packages, flavour, version)
    const offered = productOf(folder)
    const product = given.product ?? (await questions?.text('Product', offered, checkProduct)) ?? offered
    const found = await findService({ service: given.service, env, cwd })
    const isAsked = questions !== undefined && given.service === undefined && found?.dataDir !== undefined
    const isUsed = !isAsked || (await questions.yes(`A service runs on ${found.url}. Use it?`))
    return { folder, flavour, product, tarballs, port: given.port, isNamed: given.service !== undefined, found, isUsed }
  } finally {
    questions?.close()
  }
}

const checked = (cwd) => (name) => {
  requireEmpty(resolve(cwd, name))
  return name
}

async function create(wish, { env, cwd }) {
  const { folder, flavour, product, tarballs, port, isNamed } = wish
  const found = wish.isUsed ? wish.found : undefined
  const url = `http://127.0.0.1:${port}`
  const connected = found && (await connect({ found, product, url, env }))
  const key = connected?.key
  // A service that was named is used, and its key comes later. Otherwise the application has one of its own.
  const isOwn = key === undefined && !isNamed
  const settings = {
    url: isOwn ? '' : found.url,
    product,
    key: key ?? (isOwn ? { id: product, secret: randomBytes(32).toString('base64url') } : { id: '', secret: '' }),
    // If the service sends no webhooks to this machine, ringwire webhooks listen signs with it.
    webhookSecret:
      connected?.webhook?.secret ?? (key === undefined ? '' : `whsec_${randomBytes(24).toString('base64')}`),
    inviteSecret: connected?.invites?.secret ?? '',
    port,
  }
  try {
    writeFolder(folder, { flavour, product, version, url, tarballs, settings })
  } catch (error) {
    if (key !== undefined) await takeBack(connected)
    throw error
  }
  return report({ folder, cwd, flavour, product, url, found, connected, isOwn })
}
