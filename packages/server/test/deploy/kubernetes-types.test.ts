import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkTypes, writeApplication } from '@ringwire/testkit/documents'
import { Service } from '@ringwire/testkit/service'
import { type Manifests, manifestNames, readManifest, readPod, types } from './kubernetes.ts'

/* deploy/kubernetes against the types of Kubernetes 1.30, and the probes against the service. */

const work = mkdtempSync(join(tmpdir(), 'ringwire-manifests-'))
const running = new Service()
afterAll(async () => {
  await running.dispose()
  rmSync(work, { recursive: true, force: true })
})

const programOf = (name: keyof Manifests, value: unknown) => {
  const [module = '', type = ''] = types[name].split(' ')
  return `import type { ${type} } from 'kubernetes-types/${module}'\nexport const it: ${type} = ${JSON.stringify(value, null, 2)}\n`
}

test('the manifests fit the types of Kubernetes 1.30: no field is unknown, wrong or missing', async () => {
  const right = Object.fromEntries(manifestNames.map((name) => [`${name}.ts`, programOf(name, readManifest(name))]))
  const slips = {
    'unknown-field.ts': programOf(
      'deployment',
      readManifest('deployment', (text) => text.replace('enableServiceLinks', 'enableServiceLink')),
    ),
    'wrong-type.ts': programOf(
      'disruption',
      readManifest('disruption', (text) => text.replace('apiVersion: policy/v1', 'apiVersion: policy/v1beta1')),
    ),
    'missing-field.ts': programOf(
      'autoscaler',
      readManifest('autoscaler', (text) => text.replace(/^ {2}maxReplicas: .*\n/m, '')),
    ),
    'comments.ts': programOf(
      'autoscaler',
      readManifest('autoscaler', (text) => text.replaceAll(/^( +)#(?=-| {2}\w| {4})/gm, '$1')),
    ),
  }
  writeApplication(work, { ...right, ...slips })
  const said = await checkTypes(work)
  const files = [...said.matchAll(/([\w-]+\.ts)\(\d+,\d+\): error/g)].map(([, file]) => file)
  expect([...new Set(files)].sort()).toEqual(['missing-field.ts', 'unknown-field.ts', 'wrong-type.ts'])
}, 240_000)

test('the service answers what the probes ask', async () => {
  await running.start()
  const { startupProbe, livenessProbe, readinessProbe } = readPod().container
  for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
    expect((await fetch(`${running.url}${probe?.httpGet?.path}`)).status).toBe(200)
  }
})
