import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { groupLimits } from '@ringwire/protocol/groups'
import { checkTypes, writeApplication } from '@ringwire/testkit/documents'
import type { Ingress } from 'kubernetes-types/networking/v1'
import { loadConfig } from '../../src/config/config.ts'
import { adminUrlOf, promtool, startObserved } from '../admin/observed.ts'
import { finish } from '../scenarios/calls/composition.ts'
import { environmentOfPod, manifestsDirectory, readManifest, readPod } from './kubernetes.ts'

/* deploy/kubernetes/examples: an ingress, and a Prometheus of the cluster. */

const work = mkdtempSync(join(tmpdir(), 'ringwire-examples-'))
afterAll(() => rmSync(work, { recursive: true, force: true }))

const directory = join(manifestsDirectory, 'examples')
const read = (name: string) => readFileSync(join(directory, `${name}.yaml`), 'utf8')
const ingress = Bun.YAML.parse(read('ingress')) as Ingress

interface Job {
  readonly authorization: { readonly credentials_file: string }
  readonly kubernetes_sd_configs: readonly unknown[]
  readonly relabel_configs: readonly { readonly source_labels: readonly string[]; readonly regex?: string }[]
}
const scrape = Bun.YAML.parse(read('prometheus')) as { scrape_configs: readonly [Job] }

test('every example is looked at here, and none is applied with the rest', () => {
  expect(readdirSync(directory).sort()).toEqual(['ingress.yaml', 'prometheus.yaml'])
})

test('the ingress fits the types of Kubernetes 1.30: no field is unknown, wrong or missing', async () => {
  const programOf = (text: string) =>
    `import type { Ingress } from 'kubernetes-types/networking/v1'\nexport const it: Ingress = ${JSON.stringify(Bun.YAML.parse(text))}\n`
  const slip = read('ingress').replace('secretName', 'secret')
  writeApplication(work, { 'right.ts': programOf(read('ingress')), 'slip.ts': programOf(slip) })
  const said = await checkTypes(work)
  expect([...said.matchAll(/([\w-]+\.ts)\(\d+,\d+\): error/g)].map(([, file]) => file)).toEqual(['slip.ts'])
}, 240_000)

test('the ingress leads to the Service, under the name of the service, with TLS', () => {
  const { RINGWIRE_PUBLIC_URL: url = '' } = environmentOfPod()
  const { tls = [], rules = [] } = ingress.spec ?? {}
  const host = new URL(url).hostname
  expect(rules.map((rule) => rule.host)).toEqual([host])
  expect(tls).toEqual([{ hosts: [host], secretName: 'ringwire-tls' }])
  const { metadata, spec } = readManifest('service')
  const [path] = rules[0]?.http?.paths ?? []
  expect(path?.backend.service).toEqual({ name: metadata?.name ?? '', port: { name: spec?.ports?.[0]?.name ?? '' } })
})

test('the ingress bears the silence of a socket, and takes the largest body of the service', () => {
  const of = (name: string) => ingress.metadata?.annotations?.[`nginx.ingress.kubernetes.io/${name}`] ?? ''
  const loaded = loadConfig({})
  const pingS = (loaded.ok ? loaded.config.pingIntervalMs : Number.NaN) / 1_000
  for (const name of ['proxy-read-timeout', 'proxy-send-timeout']) expect(Number(of(name))).toBeGreaterThan(pingS * 2)
  expect(of('proxy-body-size')).toBe(`${groupLimits.bodyBytes / 1024}k`)
  // What the tests have seen nginx do with the service.
  const nginx = readFileSync(join(manifestsDirectory, '..', 'nginx.conf'), 'utf8')
  expect(nginx).toContain(`proxy_next_upstream ${of('proxy-next-upstream')};`)
  expect(nginx).toContain(`client_max_body_size ${of('proxy-body-size')};`)
  expect(nginx).toContain(`proxy_next_upstream_tries ${of('proxy-next-upstream-tries')};`)
  // Annotations that ingress-nginx does not have do nothing, and nobody hears of it.
  const known = ['proxy-read-timeout', 'proxy-send-timeout', 'proxy-connect-timeout', 'proxy-body-size']
  const all = [...known, 'proxy-next-upstream', 'proxy-next-upstream-tries']
  const given = Object.keys(ingress.metadata?.annotations ?? {}).map((name) => name.split('/')[1] ?? '')
  expect(given.toSorted()).toEqual(all.toSorted())
})

test('Prometheus takes the scrape configuration, which finds the port for operators of the pods', async () => {
  const [job] = scrape.scrape_configs
  const token = join(work, 'admin-token')
  writeFileSync(token, 'a-token-that-only-tests-know')
  const file = join(work, 'prometheus.yaml')
  const check = (text: string) => {
    // The Prometheus of Debian is built without Kubernetes: what finds the pods is compared below.
    const found = text.replace(
      /kubernetes_sd_configs:\n[\s\S]*?(?= {4}relabel)/,
      'static_configs: [{ targets: [pod] }]\n',
    )
    writeFileSync(file, found.replace(job.authorization.credentials_file, token))
    return promtool(['check', 'config', file])
  }
  expect(await check(read('prometheus'))).toMatchObject({ code: 0 })
  expect((await check(read('prometheus').replace('action: keep', 'action: hold'))).code).not.toBe(0)
  const [keep] = job.relabel_configs
  const [label = '', port = ''] = keep?.source_labels ?? []
  const labels = readManifest('deployment').spec?.template.metadata?.labels ?? {}
  const [name = ''] = Object.keys(labels)
  expect(label).toBe(`__meta_kubernetes_pod_label_${name.replaceAll(/\W/g, '_')}`)
  expect(port).toBe('__meta_kubernetes_pod_container_port_name')
  expect(keep?.regex).toBe(`${labels[name]};${readPod().container.ports?.[1]?.name}`)
  const names = [readManifest('namespace').metadata?.name]
  expect(job.kubernetes_sd_configs).toEqual([{ role: 'pod', namespaces: { names } }])
})

test('with the token of that file the listener of a pod gives its metrics, and without it nothing', async () => {
  const [job] = scrape.scrape_configs
  const token = 'a-token-that-only-tests-know'
  const secrets = join(work, 'secrets')
  mkdirSync(secrets)
  const path = join(secrets, job.authorization.credentials_file.split('/').at(-1) ?? '')
  writeFileSync(path, `${token}\n`, { mode: 0o600 })
  const service = await startObserved({
    RINGWIRE_ADMIN_TOKEN_FILE: path,
    RINGWIRE_ADMIN_HOST: readManifest('settings').data?.RINGWIRE_ADMIN_HOST ?? '',
  })
  const ask = async (headers: Record<string, string>) =>
    (await fetch(`${await adminUrlOf(service)}/metrics`, { headers })).status
  // As Prometheus sends it.
  expect(await ask({ Authorization: `Bearer ${token}` })).toBe(200)
  expect(await ask({})).toBe(401)
  await finish(service)
}, 60_000)
