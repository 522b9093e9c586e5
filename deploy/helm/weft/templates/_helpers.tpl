{{- define "weft.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "weft.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "weft.labels" -}}
{{ include "weft.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "weft.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "weft.name" .) -}}
{{- end -}}

{{- define "weft.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the pods of both components have. */}}
{{- define "weft.pod" -}}
serviceAccountName: {{ include "weft.serviceAccount" . }}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: workflows
    configMap:
      name: {{ required "workflows.configMap: the name of a ConfigMap with the workflows" .Values.workflows.configMap | quote }}
  - name: home
    emptyDir: {sizeLimit: 1Gi}
  - name: tmp
    emptyDir: {sizeLimit: 1Gi}
{{- end -}}

{{/* What the containers of both components have. */}}
{{- define "weft.container" -}}
image: {{ include "weft.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: workflows, mountPath: /srv/weft/workflows, readOnly: true}
  - {name: home, mountPath: /var/lib/weft}
  - {name: tmp, mountPath: /tmp}
{{- $secrets := .Values.secretsFrom }}
{{- with .Values.content.credentialsSecret }}
{{- $secrets = append $secrets . }}
{{- end }}
{{- with $secrets }}
envFrom:
  {{- range . }}
  - secretRef: {name: {{ . | quote }}}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "weft.environment" -}}
- name: WEFT_JOURNAL
  value: {{ required "journal.address: postgresql://USER@HOST/NAME, without a password" .Values.journal.address | quote }}
{{- with .Values.journal.passwordSecret }}
{{- if .name }}
- name: PGPASSWORD
  valueFrom:
    secretKeyRef: {name: {{ .name | quote }}, key: {{ .key | quote }}}
{{- end }}
{{- end }}
- name: WEFT_CONTENT
  value: {{ .Values.content.address | default .Values.journal.address | quote }}
{{- range $name, $value := .Values.content.environment }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* Where pods run: .component is the part of the values. */}}
{{- define "weft.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
