// Programs that npm cannot bring: what the tests need from the system. Plain Node, no dependencies.
// On Debian as root a missing one is installed; anywhere else the command to run is printed and the process ends with 1.
// By hand: `node scripts/system.mjs chromium coturn`.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withLock } from './lock.mjs'

/** What apt-get changes: of the machine, whichever checkout runs it. */
const aptDirectory = '/var/lib/apt'

/**
 * One row per system package. `programs` are tried in order: a bare word is looked up on PATH, a path is taken as it is
 * and may hold `*` for one whole directory name. The other members are the package's name under each package manager.
 */
const systemPackages = {
  chromium: {
    programs: [
      // The same browser without windows: the tests only look at pages.
      '/usr/bin/chromium-headless-shell',
      '/usr/bin/chromium',
      'chromium',
      'chromium-browser',
      'google-chrome',
      '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    ],
    apt: 'chromium-headless-shell',
    dnf: 'chromium',
    brew: '--cask google-chrome',
  },
  // For a run with both: a full browser is enough for the row above.
  'chromium-shell': { programs: ['/usr/bin/chromium-headless-shell'], apt: 'chromium-headless-shell' },
  // A headless shell has no tabs: every page of it is in front.
  'chromium-tabs': {
    programs: [
      '/usr/bin/chromium',
      'chromium',
      'chromium-browser',
      'google-chrome',
      '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    ],
    apt: 'chromium',
    dnf: 'chromium',
    brew: '--cask google-chrome',
  },
  firefox: {
    programs: ['firefox-esr', 'firefox', '/Applications/Firefox.app/Contents/MacOS/firefox'],
    apt: 'firefox-esr',
    dnf: 'firefox',
    brew: '--cask firefox',
  },
  // A screen for Firefox: without one it has none to share.
  xvfb: {
    programs: ['Xvfb', '/opt/X11/bin/Xvfb'],
    apt: 'xvfb',
    dnf: 'xorg-x11-server-Xvfb',
    brew: '--cask xquartz',
  },
  coturn: {
    programs: ['turnserver', '/opt/homebrew/opt/coturn/bin/turnserver'],
    apt: 'coturn',
    dnf: 'coturn',
    brew: 'coturn',
  },
  nginx: {
    programs: ['nginx', '/usr/sbin/nginx'],
    apt: 'nginx-light',
    dnf: 'nginx',
    brew: 'nginx',
  },
  haproxy: {
    programs: ['haproxy', '/usr/sbin/haproxy'],
    apt: 'haproxy',
    dnf: 'haproxy',
    brew: 'haproxy',
  },
  postgresql: {
    programs: ['/usr/lib/postgresql/*/bin/postgres', 'postgres', '/opt/homebrew/opt/postgresql@17/bin/postgres'],
    apt: 'postgresql',
    dnf: 'postgresql-server',
    brew: 'postgresql@17',
  },
  pgbouncer: { programs: ['pgbouncer', '/usr/sbin/pgbouncer'], apt: 'pgbouncer', dnf: 'pgbouncer', brew: 'pgbouncer' },
  redis: {
    programs: ['redis-server'],
    apt: 'redis-server',
    dnf: 'redis',
    brew: 'redis',
  },
  prometheus: { programs: ['prometheus'], apt: 'prometheus', dnf: 'golang-github-prometheus', brew: 'prometheus' },
  // Says whether metrics and alerts are as they should be. It comes with the other.
  promtool: { programs: ['promtool'], apt: 'prometheus', dnf: 'golang-github-prometheus', brew: 'prometheus' },
  systemd: { programs: ['systemd-analyze'], apt: 'systemd', dnf: 'systemd', brew: 'systemd' },
  // The container image checks its health with it, and its tests make a network with it.
  busybox: {
    programs: ['/usr/bin/busybox', '/bin/busybox', 'busybox'],
    apt: 'busybox-static',
    dnf: 'busybox',
    brew: 'busybox',
  },
  // Builds the extension that counts what SQLite does. The smallest one is enough: it needs no headers.
  'c-compiler': { programs: ['cc', 'gcc', 'clang', 'tcc'], apt: 'tcc', dnf: 'gcc', brew: 'gcc' },
  php: { programs: ['php'], apt: 'php-cli', dnf: 'php-cli', brew: 'php' },
  python3: { programs: ['/usr/bin/python3', 'python3'], apt: 'python3', dnf: 'python3', brew: 'python3' },
  zsh: { programs: ['zsh'], apt: 'zsh', dnf: 'zsh', brew: 'zsh' },
  fish: { programs: ['fish'], apt: 'fish', dnf: 'fish', brew: 'fish' },
  // Peers of the benchmark.
  nats: {
    programs: ['nats-server', '/usr/sbin/nats-server'],
    apt: 'nats-server',
    dnf: 'nats-server',
    brew: 'nats-server',
  },
  prosody: { programs: ['prosody'], apt: 'prosody', dnf: 'prosody', brew: 'prosody' },
  kamailio: {
    programs: ['/usr/sbin/kamailio', 'kamailio'],
    apt: 'kamailio kamailio-sqlite-modules',
    dnf: 'kamailio kamailio-sqlite',
    brew: 'kamailio',
  },
  sipp: { programs: ['sipp'], apt: 'sip-tester', dnf: 'sipp', brew: 'sipp' },
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** The paths that a `*` stands for, newest version number first. */
function expand(path) {
  const at = path.indexOf('*')
  if (at < 0) return [path]
  const directory = path.slice(0, at)
  if (!existsSync(directory)) return []
  const names = readdirSync(directory).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  return names.map((name) => directory + name + path.slice(at + 1))
}

function packageRow(name) {
  const row = systemPackages[name]
  if (!row) throw new Error(`Unknown system package ${name}; known: ${Object.keys(systemPackages).join(', ')}`)
  return row
}

/** The path of the program that a system package brings, or undefined. */
export function findSystemProgram(name) {
  const onPath = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  for (const program of packageRow(name).programs) {
    const paths = program.includes('/') ? expand(program) : onPath.map((directory) => join(directory, program))
    const found = paths.find(isProgram)
    if (found) return found
  }
  return undefined
}

function linuxFamilies() {
  if (!existsSync('/etc/os-release')) return []
  const release = readFileSync('/etc/os-release', 'utf8')
  const value = (key) => release.match(new RegExp(`^${key}="?([^"\n]*)"?$`, 'm'))?.[1] ?? ''
  return [value('ID'), ...value('ID_LIKE').split(' ')]
}

/** Whether this system packages a Chromium without windows. */
export function hasHeadlessShell() {
  return linuxFamilies()[0] === 'debian'
}

/** The commands that install the packages here, or undefined where the package manager is not known. */
function installCommands(names) {
  const rows = (manager) => [...new Set(names.map((name) => packageRow(name)[manager]))]
  const packages = (manager) => rows(manager).flatMap((row) => row.split(' '))
  if (process.platform === 'darwin') return rows('brew').map((row) => ['brew', 'install', ...row.split(' ')])
  const families = linuxFamilies()
  if (families.includes('debian')) {
    return [
      ['apt-get', 'update'],
      ['apt-get', 'install', '-y', '--no-install-recommends', ...packages('apt')],
    ]
  }
  if (families.includes('fedora')) return [['dnf', 'install', '-y', ...packages('dnf')]]
  return undefined
}

function printMissing(names) {
  const commands = installCommands(names)
  const sudo = process.platform === 'darwin' ? '' : 'sudo '
  console.error(`Missing on this system: ${names.join(', ')}. Install it with:`)
  if (commands) console.error(`  ${commands.map((command) => sudo + command.join(' ')).join(' && ')}`)
  else {
    for (const name of names) {
      console.error(
        `  your package manager's "${name}"; one of these programs must be found: ${packageRow(name).programs.join(', ')}`,
      )
    }
  }
}

const missingOf = (names) => names.filter((name) => findSystemProgram(name) === undefined)

/** Only one process of this machine at a time: apt-get gives up at once where another one updates its lists. */
function installMissing(names) {
  // Another process that had the lock before may have installed some of them.
  const missing = missingOf(names)
  if (missing.length === 0) return
  console.error(`Installing ${missing.join(', ')} (apt-get) …`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  for (const [command, ...args] of installCommands(missing)) {
    // Its output belongs on stderr: stdout is the caller's.
    const { status, error } = spawnSync(command, args, { stdio: ['ignore', 2, 2], env })
    if (status !== 0) {
      console.error(`${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ` (exit code ${status})`}.`)
      process.exit(1)
    }
  }
}

/**
 * Makes sure that the named system packages are there and gives the path of each one's program.
 * Ends the process where it cannot.
 */
export function requireSystem(names) {
  if (missingOf(names).length > 0) {
    const mayInstall = process.getuid?.() === 0 && linuxFamilies()[0] === 'debian'
    if (mayInstall) withLock(aptDirectory, () => installMissing(names))
    const still = missingOf(names)
    if (still.length > 0) {
      printMissing(still)
      process.exit(1)
    }
  }
  return Object.fromEntries(names.map((name) => [name, findSystemProgram(name)]))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, path] of Object.entries(requireSystem(process.argv.slice(2)))) console.log(`${name} ${path}`)
}
