import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/**
 * The import rules of docs/architecture.md are rules of biome.json. Here each one is broken on purpose, in a directory
 * with the same biome.json, and has to be reported; and what the rules allow has to pass.
 */
const root = dirname(import.meta.dir)
const importRule = 'lint/style/noRestrictedImports'
const plugin = 'plugin'

const server = (file: string) => `packages/server/src/${file}`
const values = (from: string) => `import * as it from '${from}'\nexport default it\n`
const types = (names: string, from: string) => `import type { ${names} } from '${from}'\nexport type It = ${names}\n`

interface Case {
  file: string
  code: string
  /** The diagnostic that has to be there; undefined where nothing may be. */
  broken: string | undefined
}

const breaks = (file: string, from: string): Case => ({ file, code: values(from), broken: importRule })
const passes = (file: string, from: string): Case => ({ file, code: values(from), broken: undefined })

/** What the service does, and what that is made of. */
const subjects = [
  ...['audit', 'auth', 'calls', 'config', 'delivery', 'history', 'ice', 'limits', 'observability', 'operators'],
  ...['outgoing', 'participants'],
  ...['presence', 'products', 'push', 'time', 'timeline', 'webhooks'],
]
/** Files that nobody imports but those that start the service. */
const starters = ['admin', 'backend', 'core', 'front', 'listen', 'main', 'rest', 'server'].map(
  (name) => `../${name}.ts`,
)

const rules: Record<string, Case[]> = {
  'protocol imports typebox and its own folder alone': [
    passes('packages/protocol/src/a.ts', 'typebox'),
    passes('packages/protocol/src/b.ts', 'typebox/compile'),
    passes('packages/protocol/src/c.ts', './events/call.ts'),
    passes('packages/protocol/src/events/d.ts', '../text.ts'),
    passes('packages/protocol/src/e.test.ts', 'fast-check'),
    ...['node:fs', 'bun', 'hono', '@ringwire/client/x', '../../server/src/ports/push.ts', './../package.json'].map(
      (from, i) => breaks(`packages/protocol/src/x${i}.ts`, from),
    ),
    breaks('packages/protocol/src/events/x.ts', 'ajv'),
    breaks('packages/protocol/src/events/y.ts', '../../../server/src/ports/push.ts'),
    breaks('packages/protocol/src/events/z.ts', './../../../server/src/ports/push.ts'),
  ],
  'the client imports types and constants of protocol': [
    passes('packages/client/src/a.ts', '@ringwire/protocol/close-codes'),
    passes('packages/client/src/media/b.ts', '../connection.ts'),
    {
      file: 'packages/client/src/c.ts',
      code: types('CallInvite', '@ringwire/protocol/events/call'),
      broken: undefined,
    },
    ...['validate', 'envelope', 'text'].map((file) =>
      breaks(`packages/client/src/${file}.ts`, `@ringwire/protocol/${file}`),
    ),
    breaks('packages/client/src/x.ts', 'typebox'),
    breaks('packages/client/src/media/x.ts', 'react'),
    breaks('packages/client/src/y.ts', 'node:fs'),
    breaks('packages/client/src/z.ts', '../../server/src/ports/push.ts'),
    { file: 'packages/client/src/w.ts', code: values('@ringwire/protocol/events/call'), broken: plugin },
    { file: 'packages/client/src/v.ts', code: values('@ringwire/protocol/rest'), broken: plugin },
  ],
  'react/ imports React and the client': [
    passes('packages/client/src/react/a.ts', 'react'),
    passes('packages/client/src/react/b.ts', '../media/call-media.ts'),
    ...['react-dom', '@ringwire/protocol/close-codes', 'node:fs', '../../../server/src/ports/push.ts'].map((from, i) =>
      breaks(`packages/client/src/react/x${i}.ts`, from),
    ),
  ],
  'ui imports React and the client': [
    passes('packages/ui/src/a.ts', 'react'),
    passes('packages/ui/src/b.ts', './line.ts'),
    passes('packages/ui/src/c.ts', '@ringwire/client/media'),
    ...['react-dom', '@ringwire/protocol/close-codes', 'node:fs', '../../client/src/client.ts'].map((from, i) =>
      breaks(`packages/ui/src/x${i}.ts`, from),
    ),
  ],
  "the operator's page imports Preact": [
    passes('packages/server/page/a.ts', 'preact/hooks'),
    passes('packages/server/page/b.ts', './ask.ts'),
    { file: 'packages/server/page/c.ts', code: types('CallView', '@ringwire/protocol/backend'), broken: undefined },
    { file: 'packages/server/page/d.ts', code: values('@ringwire/protocol/backend'), broken: plugin },
    ...['react', 'preact/compat', '@ringwire/client', 'node:fs', '../src/call/call.ts'].map((from, i) =>
      breaks(`packages/server/page/x${i}.ts`, from),
    ),
  ],
  'call/ is pure': [
    passes(server('call/a.ts'), './call.ts'),
    { file: server('call/b.ts'), code: types('CallStatus', '@ringwire/protocol/rest'), broken: undefined },
    { file: server('call/c.ts'), code: types('CallOver', '@ringwire/protocol/events/call'), broken: undefined },
    passes(server('call/d.ts'), '@ringwire/protocol/errors'),
    ...[
      'node:fs',
      'fs',
      'bun',
      'bun:sqlite',
      'typebox',
      'pino',
      '../ports/push.ts',
      './../ports/push.ts',
      '@ringwire/protocol/validate',
      '@ringwire/protocol/envelope',
    ].map((from, i) => breaks(server(`call/x${i}.ts`), from)),
  ],
  'session/ is pure': [
    passes(server('session/a.ts'), './log.ts'),
    passes(server('session/b.ts'), '../ports/push.ts'),
    passes(server('session/c.ts'), '../call/call.ts'),
    ...['node:crypto', 'ioredis', '../calls/calls.ts', '../stores/memory/told.ts', '../time/clock.ts'].map((from, i) =>
      breaks(server(`session/x${i}.ts`), from),
    ),
  ],
  'cluster/ knows other nodes by its ports alone': [
    passes(server('cluster/a.ts'), './owner.ts'),
    passes(server('cluster/b.ts'), '../ports/post.ts'),
    passes(server('cluster/c.ts'), '../session/table.ts'),
    passes(server('cluster/d.ts'), '../call/read.ts'),
    ...['ioredis', '../stores/redis/keys.ts', '../calls/calls.ts', '../signaling/outlet.ts', '../backend.ts'].map(
      (from, i) => breaks(server(`cluster/x${i}.ts`), from),
    ),
  ],
  'ports/ are contracts': [
    passes(server('ports/a.ts'), './maybe.ts'),
    passes(server('ports/b.ts'), '../call/call.ts'),
    passes(server('ports/c.ts'), '@ringwire/protocol/events/auth'),
    ...[
      '../calls/calls.ts',
      '../time/clock.ts',
      '../stores/redis/keys.ts',
      '../config/config.ts',
      'bun',
      'ioredis',
    ].map((from, i) => breaks(server(`ports/x${i}.ts`), from)),
  ],
  'a contract beside its subject imports contracts': [
    passes(server('push/a.port.ts'), '../ports/maybe.ts'),
    passes(server('cluster/b.port.ts'), './directory.port.ts'),
    ...['./sender.ts', '../session/table.ts', '../config/config.ts', 'node:crypto'].map((from, i) =>
      breaks(server(`${i % 2 === 0 ? 'push' : 'cluster'}/x${i}.port.ts`), from),
    ),
  ],
  'subjects import neither their callers nor other nodes, stores or the command line': [
    breaks(server('stray.ts'), './signaling/gateway.ts'),
    breaks(server('stray-http.ts'), './http/app.ts'),
    ...subjects.flatMap((folder) =>
      [
        ...['../signaling/gateway.ts', '../http/app.ts', '../stores/memory/calls.ts', '../cli/keys.ts'],
        ...['../session/table.ts', '../cluster/owner.ts', ...starters],
      ].map((from, i) => breaks(server(`${folder}/x${i}.ts`), from)),
    ),
    breaks(server('config/settings/x.ts'), '../../stores/redis/open.ts'),
    breaks(server('history/history.ts'), 'bun:sqlite'),
    passes(server('history/a.ts'), '../call/call.ts'),
    passes(server('history/b.ts'), '../http/replies.ts'),
    passes(server('calls/deadlines.ts'), 'node:crypto'),
    passes(server('auth/keys.ts'), '../ports/product-store.ts'),
  ],
  'signaling/ imports neither http/ nor stores/ nor what starts it': [
    passes(server('signaling/a.ts'), '../calls/calls.ts'),
    passes(server('signaling/b.ts'), './connection.ts'),
    ...['../http/app.ts', '../http/replies.ts', '../stores/sqlite/calls.ts', '../cli/keys.ts', '../session/table.ts']
      .concat(starters, '../cluster/owner.ts')
      .map((from, i) => breaks(server(`signaling/x${i}.ts`), from)),
    breaks(server('signaling/y.ts'), 'bun:sqlite'),
  ],
  'http/ knows no subject': [
    passes(server('http/a.ts'), '../observability/health.ts'),
    passes(server('http/b.ts'), '../limits/limits.ts'),
    ...[
      '../signaling/gateway.ts',
      '../stores/sqlite/calls.ts',
      '../cli/keys.ts',
      '../history/routes.ts',
      '../auth/tokens.ts',
    ]
      .concat(starters)
      .map((from, i) => breaks(server(`http/x${i}.ts`), from)),
    breaks(server('http/y.ts'), 'bun:sqlite'),
  ],
  'cli/ reaches stores through main.ts alone': [
    passes(server('cli/a.ts'), '../history/history.ts'),
    passes(server('cli/b.ts'), 'commander'),
    ...[
      '../stores/sqlite/products.ts',
      '../signaling/gateway.ts',
      '../http/app.ts',
      '../session/table.ts',
      'bun:sqlite',
    ]
      .concat(starters)
      .map((from, i) => breaks(server(`cli/x${i}.ts`), from)),
    breaks(server('cli/phone/x.ts'), '../../server.ts'),
  ],
  'conformance/ knows a service from outside': [
    passes(server('conformance/a.ts'), './wire.ts'),
    passes(server('conformance/service/b.ts'), '../party.ts'),
    passes(server('conformance/c.ts'), '@ringwire/protocol/server-events'),
    passes(server('conformance/d.ts'), 'node:net'),
    ...['../call/call.ts', '../outgoing/signature.ts', '../server.ts', 'hono'].map((from, i) =>
      breaks(server(`conformance/x${i}.ts`), from),
    ),
    breaks(server('conformance/service/y.ts'), '../../call/call.ts'),
  ],
  'a store imports contracts, call, its own folder and its driver': [
    passes(server('stores/sqlite/a.ts'), 'bun:sqlite'),
    passes(server('stores/sqlite/b.ts'), './rows.ts'),
    passes(server('stores/sqlite/c.ts'), '../../ports/push.ts'),
    passes(server('stores/memory/e.ts'), '../../call/call.ts'),
    passes(server('stores/sqlite/f.ts'), '../sql/rows.ts'),
    passes(server('stores/postgres/g.ts'), '../sql/rows.ts'),
    passes(server('stores/postgres/h.ts'), 'bun'),
    passes(server('stores/sql/i.ts'), '../../call/call.ts'),
    passes(server('stores/redis/j.ts'), '../../cluster/directory.port.ts'),
    passes(server('stores/memory/k.ts'), '../../session/table.ts'),
    ...[
      ['sqlite', '../memory/calls.ts'],
      ['sqlite', './../memory/calls.ts'],
      ['memory', '../sqlite/calls.ts'],
      ['redis', '../postgres/calls.ts'],
      ['postgres', '../redis/calls.ts'],
      ['memory', 'bun:sqlite'],
      ['sqlite', 'ioredis'],
      ['postgres', 'pg'],
      ['sql', '../sqlite/rows.ts'],
      ['sql', 'bun:sqlite'],
      ['memory', '../sql/rows.ts'],
      ['sqlite', '../../calls/calls.ts'],
      ['redis', '../../cluster/directory.ts'],
      ['redis', '../../session/table.ts'],
      ['memory', '../../push/waking.ts'],
      ['sqlite', '../../signaling/gateway.ts'],
      ['sqlite', 'hono'],
    ].map(([store, from], i) => breaks(server(`stores/${store}/x${i}.ts`), from ?? '')),
  ],
  'what is between two stores imports contracts and these stores': [
    passes(server('stores/a.ts'), './sqlite/content.ts'),
    passes(server('stores/b.ts'), '../ports/migration.ts'),
    ...['../call/call.ts', '../calls/calls.ts', '../backend.ts', 'bun:sqlite', 'bun'].map((from, i) =>
      breaks(server(`stores/x${i}.ts`), from),
    ),
  ],
  'stores are named only in backend.ts': [
    passes(server('backend.ts'), './stores/sqlite/calls.ts'),
    breaks(server('server.ts'), './stores/sqlite/calls.ts'),
    breaks(server('main.ts'), './stores/sqlite/calls.ts'),
    breaks(server('rest.ts'), './stores/migration.ts'),
  ],
  'hono is known only in http/': [
    passes(server('http/hono.ts'), 'hono'),
    passes(server('http/body.ts'), 'hono/body-limit'),
    ...['hono.ts', 'signaling/hono.ts', 'cli/hono.ts', 'auth/hono.ts'].flatMap((file, i) => [
      breaks(server(file), 'hono'),
      breaks(server(file.replace('.ts', `${i}.ts`)), 'hono/body-limit'),
    ]),
  ],
  "Bun's WebSocket server is known only in signaling/ and server.ts": [
    {
      file: server('signaling/ws.ts'),
      code: `${types('ServerWebSocket', 'bun')}export type Other = Bun.ServerWebSocket<undefined>\n`,
      broken: undefined,
    },
    ...['ws.ts', 'http/ws.ts', 'cli/ws.ts', 'stores/redis/ws.ts', 'observability/ws.ts'].flatMap((file, i) => [
      { file: server(file), code: types('ServerWebSocket', 'bun'), broken: importRule },
      {
        file: server(file.replace('.ts', `${i}.ts`)),
        code: 'export type It = Bun.ServerWebSocket<undefined>\n',
        broken: plugin,
      },
      {
        file: server(file.replace('.ts', `${i}x.ts`)),
        code: 'export type It = Bun.WebSocketHandler<undefined>\n',
        broken: plugin,
      },
    ]),
  ],
  'a type is imported at the top of the file, where these rules see it': [
    {
      file: server('call/inline.ts'),
      code: "export type It = import('../ports/call-store.ts').CallStore\n",
      broken: plugin,
    },
    { file: server('inline.ts'), code: "export type It = typeof import('./server.ts')\n", broken: plugin },
  ],
  'a dynamic import and a re-export count as imports': [
    { file: server('dynamic.ts'), code: "export const it = import('./server.ts')\n", broken: importRule },
    { file: server('export.ts'), code: "export { it } from './http/app.ts'\n", broken: importRule },
  ],
  'the testkit knows the service from outside alone': [
    passes('packages/testkit/src/a.ts', './client.ts'),
    passes('packages/testkit/src/b.ts', 'playwright-core'),
    passes('packages/testkit/src/c.ts', '../../../scripts/system.mjs'),
    passes('packages/testkit/src/e.ts', 'node:fs/promises'),
    passes('packages/testkit/src/d.test.ts', 'bun:test'),
    ...['../../server/src/ports/push.ts', '../../server/test/support/redis.ts', 'ioredis', 'bun:test'].map((from, i) =>
      breaks(`packages/testkit/src/x${i}.ts`, from),
    ),
  ],
  "the site reads the project's files, and imports none of its code": [
    passes('site/src/a.ts', './pages.ts'),
    passes('site/src/b.ts', 'node:fs'),
    ...['../../scripts/setup.mjs', '../../packages/protocol/src/rest.ts', '@ringwire/protocol/rest', 'vitepress'].map(
      (from, i) => breaks(`site/src/x${i}.ts`, from),
    ),
  ],
  'only tests import the testkit, or from a test folder': [
    passes(server('testkit.test.ts'), '@ringwire/testkit/client'),
    passes('packages/server/test/a.ts', '@ringwire/testkit/client'),
    ...['testkit-a.ts', 'call/testkit.ts', 'signaling/testkit.ts', 'http/testkit.ts', 'testkit-b.ts'].flatMap(
      (file, i) => [
        { file: server(file), code: values('@ringwire/testkit/client'), broken: plugin },
        { file: server(file.replace('.ts', `${i}y.ts`)), code: values('../../testkit/src/client.ts'), broken: plugin },
      ],
    ),
    { file: 'packages/client/src/testkit.ts', code: values('@ringwire/testkit/client'), broken: plugin },
    { file: 'packages/demo/src/testkit.ts', code: values('../test/support/service.ts'), broken: plugin },
  ],
  'only tests and fixtures import a fixture': [
    passes(server('call/a.test.ts'), './call.fixture.ts'),
    passes(server('call/b.fixture.ts'), '../ports/call-store.fixture.ts'),
    passes('packages/server/test/fixture.ts', '../src/call/call.fixture.ts'),
    ...['fixture.ts', 'call/fixture.ts', 'signaling/fixture.ts', 'backend.ts'].map((file) => ({
      file: server(file.replace('.ts', '-user.ts')),
      code: values('./call.fixture.ts'),
      broken: plugin,
    })),
    { file: 'packages/client/src/fixture.ts', code: values('./environment.fixture.ts'), broken: plugin },
  ],
  'a unit test and its fixtures import nothing from a test folder': [
    passes(server('folder.test.ts'), '@ringwire/testkit/patience'),
    passes(server('stores/sqlite/folder.fixture.ts'), '../../calls/calls.ts'),
    breaks(server('folder-a.test.ts'), '../test/support/redis.ts'),
    breaks(server('call/folder.test.ts'), '../../test/model/machine.ts'),
    breaks(server('call/folder.fixture.ts'), '../../test/model/machine.ts'),
    breaks(server('calls/folder.property.test.ts'), '../../../client/test/support/people.ts'),
    breaks('packages/client/src/media/folder.test.ts', '../../test/support/people.ts'),
    breaks('packages/testkit/src/folder.test.ts', '../../server/test/support/redis.ts'),
    {
      file: server('folder-b.test.ts'),
      code: "export const it = await import('../test/support/redis.ts')\n",
      broken: importRule,
    },
  ],
  'main.ts alone reads the environment': [
    { file: server('env.ts'), code: 'export const it = process.env.PATH\n', broken: 'lint/style/noProcessEnv' },
    { file: server('cli/env.ts'), code: 'export const it = process.env.PATH\n', broken: 'lint/style/noProcessEnv' },
  ],
  'time and chance come to cluster/ through its options': [
    {
      file: server('cluster/time.ts'),
      code: 'export const it = (timers: { sleep: unknown }) => timers.sleep\n',
      broken: undefined,
    },
    ...['setTimeout', 'setInterval', 'setImmediate', 'performance', 'Date', 'Bun', 'crypto'].map((it, i) => ({
      file: server(`cluster/global${i}.ts`),
      code: `export const it = ${it}\n`,
      broken: 'lint/style/noRestrictedGlobals',
    })),
  ],
  'imports form no cycle': [
    {
      file: server('ring-a.ts'),
      code: "export { b as a } from './ring-b.ts'\n",
      broken: 'lint/suspicious/noImportCycles',
    },
    {
      file: server('ring-b.ts'),
      code: "export { a as b } from './ring-a.ts'\n",
      broken: 'lint/suspicious/noImportCycles',
    },
    {
      file: server('calls/type-ring-a.ts'),
      code: types('B', './type-ring-b.ts'),
      broken: 'lint/suspicious/noImportCycles',
    },
    {
      file: server('calls/type-ring-b.ts'),
      code: "import { type It, value } from './type-ring-a.ts'\nexport type B = It | typeof value\n",
      broken: 'lint/suspicious/noImportCycles',
    },
  ],
}

interface Diagnostic {
  category: string
  severity: string
  location: { path: string }
}

let directory = ''
let diagnostics: Diagnostic[] = []

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'ringwire-imports-'))
  for (const path of ['biome.json', 'scripts/lint']) {
    cpSync(join(root, path), join(directory, path), { recursive: true })
  }
  for (const { file, code } of Object.values(rules).flat()) {
    mkdirSync(dirname(join(directory, file)), { recursive: true })
    writeFileSync(join(directory, file), code)
  }
  const biome = join(root, 'node_modules', '.bin', 'biome')
  const args = ['lint', '--vcs-enabled=false', '--max-diagnostics=none', '--reporter=json', '.']
  const { stdout } = Bun.spawnSync([biome, ...args], { cwd: directory, stderr: 'ignore' })
  diagnostics = JSON.parse(stdout.toString()).diagnostics
})

afterAll(() => rmSync(directory, { recursive: true, force: true }))

test('no two cases share a file', () => {
  const files = Object.values(rules).flatMap((cases) => cases.map((it) => it.file))
  expect(files.length).toBe(new Set(files).size)
})

for (const [rule, cases] of Object.entries(rules)) {
  describe(rule, () => {
    for (const { file, code, broken } of cases) {
      test(`${broken === undefined ? 'allows' : 'reports'} ${file}: ${code.split('\n')[0]}`, () => {
        const found = diagnostics
          .filter((it) => it.location.path === file && it.severity === 'error')
          .map((it) => it.category)
        if (broken === undefined) expect(found).toEqual([])
        else expect(found).toContain(broken)
      })
    }
  })
}
