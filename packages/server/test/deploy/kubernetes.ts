import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Deployment } from 'kubernetes-types/apps/v1'
import type { HorizontalPodAutoscaler } from 'kubernetes-types/autoscaling/v2'
import type { ConfigMap, Namespace, Service } from 'kubernetes-types/core/v1'
import type { NetworkPolicy } from 'kubernetes-types/networking/v1'
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1'
import { deploy } from './compose.ts'

export const manifestsDirectory = join(deploy, 'kubernetes')

/** The manifests by their file names, each with the type that it has to be of. */
export interface Manifests {
  readonly namespace: Namespace
  readonly settings: ConfigMap
  readonly deployment: Deployment
  readonly service: Service
  readonly disruption: PodDisruptionBudget
  readonly autoscaler: HorizontalPodAutoscaler
  readonly network: NetworkPolicy
}

/** Which of the packages' types each of them is. */
export const types: Readonly<Record<keyof Manifests, string>> = {
  namespace: 'core/v1 Namespace',
  settings: 'core/v1 ConfigMap',
  deployment: 'apps/v1 Deployment',
  service: 'core/v1 Service',
  disruption: 'policy/v1 PodDisruptionBudget',
  autoscaler: 'autoscaling/v2 HorizontalPodAutoscaler',
  network: 'networking/v1 NetworkPolicy',
}

export const manifestNames = Object.keys(types) as (keyof Manifests)[]

export function readManifest<Name extends keyof Manifests>(name: Name, change = (text: string) => text) {
  return Bun.YAML.parse(change(readFileSync(join(manifestsDirectory, `${name}.yaml`), 'utf8'))) as Manifests[Name]
}

/** What is in the directory, and what `kubectl apply -k` takes of it. */
export function filesOfKustomization() {
  const text = readFileSync(join(manifestsDirectory, 'kustomization.yaml'), 'utf8')
  const { resources } = Bun.YAML.parse(text) as { resources: string[] }
  const files = readdirSync(manifestsDirectory).filter(
    (file) => file.endsWith('.yaml') && file !== 'kustomization.yaml',
  )
  return { resources, files }
}

/** The part that runs: the pod and its one container. */
export function readPod() {
  const pod = readManifest('deployment').spec?.template.spec
  const [container] = pod?.containers ?? []
  if (pod === undefined || container === undefined) throw new Error('the Deployment has no container')
  return { pod, container }
}

/** What the container is given as environment; the name of a pod stands for what only a cluster knows. */
export function environmentOfPod(): Record<string, string> {
  const own = (readPod().container.env ?? []).map(({ name, value = 'ringwire-7d9c-x2x4z' }) => [name, value] as const)
  return { ...readManifest('settings').data, ...Object.fromEntries(own) }
}
