import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { block } from '@ringwire/testkit/documents'
import { loadConfig, settingRows } from '../../src/config/config.ts'
import { createMetrics, nobody } from '../../src/observability/metrics.ts'
import { environmentOfPod, filesOfKustomization, manifestNames, readManifest, readPod } from './kubernetes.ts'

/* deploy/kubernetes without a cluster: whether it fits the service, and itself. */

const work = mkdtempSync(join(tmpdir(), 'ringwire-kubernetes-'))
afterAll(() => rmSync(work, { recursive: true, force: true }))

const { pod, container } = readPod()
const env = environmentOfPod()
const secretPaths = Object.values(env).filter((value) => value.startsWith('/run/secrets/'))
const labels = readManifest('deployment').spec?.template.metadata?.labels ?? {}

beforeAll(() => {
  const secret = 'a-secret-of-more-than-32-characters'.repeat(2)
  const values: Record<string, string> = {
    'database-url': 'postgres://ringwire:secret@db.example.com/calls?sslmode=verify-full',
    'redis-url': 'rediss://ringwire:secret@redis.example.com:6379/0',
    'jwt-secrets': `k1:${secret}`,
    'bootstrap-keys': `shop-1:${secret}:shop`,
    'admin-token': secret,
  }
  for (const path of secretPaths) {
    writeFileSync(join(work, basename(path)), values[basename(path)] ?? '', { mode: 0o640 })
  }
})

/** What the service makes of what the container is given. */
function configOfPod(change: Readonly<Record<string, string>> = {}) {
  const here = Object.entries({ ...env, ...change }).map(([name, value]) => [
    name,
    secretPaths.includes(value) ? join(work, basename(value)) : value,
  ])
  const loaded = loadConfig(Object.fromEntries(here))
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  return loaded
}

test('every file is applied', () => {
  const { resources, files } = filesOfKustomization()
  expect(resources.toSorted()).toEqual(files.toSorted())
  expect(resources).toEqual(manifestNames.map((name) => `${name}.yaml`))
})

test('the environment is settings of the service, which takes them without a warning, and no secret is in it', () => {
  const settings = new Map(settingRows().map((row) => [row.name, row]))
  expect(Object.keys(env).filter((name) => !settings.has(name.replace(/_FILE$/, '')))).toEqual([])
  expect(Object.keys(env).filter((name) => settings.get(name)?.secret)).toEqual([])
  expect(configOfPod().warnings).toEqual([])
  expect(() => configOfPod({ RINGWIRE_ADMIN_TOKEN_FILE: '' })).toThrow('RINGWIRE_ADMIN_TOKEN is required')
  // Kubernetes would set RINGWIRE_PORT itself, for a Service of that name.
  expect(pod.enableServiceLinks).toBe(false)
})

test('each secret is a file that the group of the service may read and nobody else, and the document names it', () => {
  const [mount] = container.volumeMounts ?? []
  const volume = pod.volumes?.find(({ name }) => name === mount?.name)
  expect(secretPaths.map(dirname)).toEqual(secretPaths.map(() => mount?.mountPath ?? ''))
  expect([volume?.secret?.defaultMode, pod.securityContext?.fsGroup]).toEqual([0o440, 10001])
  const commands = block('docs/deployment.md', 'sh', '## With Kubernetes')
  const made = [...commands.matchAll(/--from-file=\S+/g)].map(([option]) => option)
  expect(made).toEqual(secretPaths.map((path) => `--from-file=${basename(path)}`))
})

test('ports are those of the service, wherever they are named', () => {
  const { port, adminPort } = configOfPod().config
  expect(container.ports?.map(({ name, containerPort }) => [name, containerPort])).toEqual([
    ['http', port],
    ['admin', adminPort ?? 0],
  ])
  expect(readManifest('service').spec?.ports?.map(({ targetPort }) => targetPort)).toEqual(['http'])
  const rules = readManifest('network').spec?.ingress ?? []
  expect(rules.flatMap(({ ports = [] }) => ports.map((it) => it.port))).toEqual(['http', 'admin'])
  // An empty list of peers would be everybody.
  for (const { from } of rules) expect(from?.[0]?.namespaceSelector?.matchLabels).toBeDefined()
})

test('no probe but readiness asks for the stores', () => {
  const { startupProbe, livenessProbe, readinessProbe } = container
  const asked = [startupProbe, livenessProbe, readinessProbe].map((probe) => [
    probe?.httpGet?.path,
    probe?.httpGet?.port,
  ])
  expect(asked).toEqual([
    ['/healthz', 'http'],
    ['/healthz', 'http'],
    ['/readyz', 'http'],
  ])
  // Longer than the checks of /readyz take at the most, 1 s.
  expect(readinessProbe?.timeoutSeconds).toBeGreaterThan(1)
})

test('a stop has the time that a drain takes, also while a store is away', () => {
  const longest = configOfPod().config.drainMs + 10_000
  expect((pod.terminationGracePeriodSeconds ?? 0) * 1000).toBeGreaterThanOrEqual(longest)
})

test('it is no root, has no rights and cannot write', () => {
  expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10001, runAsGroup: 10001 })
  expect(pod.automountServiceAccountToken).toBe(false)
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  expect(container.resources?.limits?.memory).toBeDefined()
})

test('everything speaks of the same pods; a step takes one of at least two', () => {
  const selectors = [
    readManifest('deployment').spec?.selector.matchLabels,
    readManifest('service').spec?.selector,
    readManifest('disruption').spec?.selector?.matchLabels,
    readManifest('network').spec?.podSelector?.matchLabels,
    pod.topologySpreadConstraints?.[0]?.labelSelector?.matchLabels,
  ]
  for (const selector of selectors) expect(selector).toEqual(labels)
  const { scaleTargetRef, minReplicas = 0, metrics } = readManifest('autoscaler').spec ?? {}
  const { kind, apiVersion, metadata } = readManifest('deployment')
  expect(scaleTargetRef).toEqual({ kind, apiVersion, name: metadata?.name } as NonNullable<typeof scaleTargetRef>)
  expect([readManifest('disruption').spec?.maxUnavailable, minReplicas > 1]).toEqual([1, true])
  // The percentage refers to the request.
  expect([metrics?.[0]?.resource?.name, container.resources?.requests?.cpu]).toEqual(['cpu', '1'])
})

test('the metric of connections, which is a comment, is one of the service', () => {
  const all =
    readManifest('autoscaler', (text) => text.replaceAll(/^( +)#(?=-| {2}\w| {4})/gm, '$1')).spec?.metrics ?? []
  const names = createMetrics({ node: 'n', version: '1', stores: ['database'] })
    .families(nobody)
    .map(({ name }) => name)
  expect(all.map(({ type }) => type)).toEqual(['Resource', 'Pods'])
  expect(names).toContain(all[1]?.pods?.metric.name ?? '')
})
