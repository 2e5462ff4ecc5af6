/**
 * The folder of a new application.
 *
 *   requireEmpty(folder)       → nothing, or a UsageError where something is there
 *   writeFolder(folder, { … }) → the files; it overwrites nothing
 */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UsageError } from './arguments.mjs'
import { manifest } from './packages.mjs'

const templates = fileURLToPath(new URL('../template', import.meta.url))

export function requireEmpty(folder) {
  const found = statSync(folder, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isDirectory()) throw new UsageError(`${folder} is a file.`)
  if (readdirSync(folder).length > 0) throw new UsageError(`${folder} has files. Give a folder that is empty or new.`)
}

/** `settings` is what `.env` says, in its order. */
export function writeFolder(folder, { flavour, product, version, url, tarballs, settings }) {
  requireEmpty(folder)
  const words = { product, url, page: flavour === 'react' ? 'page/main.tsx' : 'page/main.ts' }
  for (const [file, source] of [...filesIn('common'), ...filesIn(flavour)]) {
    const text = readFileSync(source, 'utf8')
    write(folder, file, file === 'README.md' ? filled(text, words) : text)
  }
  write(folder, '.env', envText(settings), 0o600)
  write(folder, '.gitignore', '.env\ndata/\ndist/\nnode_modules/\n')
  write(folder, 'tsconfig.json', tsconfig(flavour))
  write(folder, 'package.json', manifest({ name: nameOf(folder), flavour, version, tarballs }))
  // A lock file has the hashes of tarballs, and npm would refuse those that are packed next.
  if (tarballs !== undefined) write(folder, '.npmrc', 'package-lock=false\n')
}

function filesIn(part) {
  const from = join(templates, part)
  return readdirSync(from, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .map((file) => [relative(from, file), file])
}

function write(folder, file, text, mode = 0o644) {
  const path = join(folder, file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text, { mode, flag: 'wx' })
}

const filled = (text, words) => text.replaceAll(/\{\{(\w+)\}\}/g, (_, word) => words[word])

/** As npm wants a name. */
function nameOf(folder) {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
  return name.replace(/^[^a-z0-9]+/, '') || 'phone'
}

function envText({ url, product, key, webhookSecret, inviteSecret, port }) {
  return `# Secrets. Only the owner of this file may read it, and Git leaves it out.
# Where the service is, for this backend and for browsers. Empty: npm start runs one in this folder.
RINGWIRE_URL=${url}
PRODUCT=${product}
RINGWIRE_KEY_ID=${key.id}
RINGWIRE_KEY_SECRET=${key.secret}
# What signs webhooks, and what signs the questions about invites. A service in this folder is asked for them.
WEBHOOK_SECRET=${webhookSecret}
INVITE_SECRET=${inviteSecret}
PORT=${port}
`
}

function tsconfig(flavour) {
  const compilerOptions = {
    target: 'esnext',
    lib: ['esnext', 'dom', 'dom.iterable'],
    module: 'preserve',
    moduleResolution: 'bundler',
    ...(flavour === 'react' && { jsx: 'react-jsx' }),
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  }
  return `${JSON.stringify({ compilerOptions, include: ['page'] }, null, 2)}\n`
}
