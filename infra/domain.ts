/** Host names of a cell: their certificates and DNS records. */
import { Certificate, CertificateValidation, type ICertificate } from 'aws-cdk-lib/aws-certificatemanager';
import {
  AaaaRecord,
  ARecord,
  HostedZone,
  type IAliasRecordTarget,
  RecordTarget,
} from 'aws-cdk-lib/aws-route53';
import type { Construct } from 'constructs';
import type { CellSettings } from './settings.ts';

type Domain = NonNullable<CellSettings['apiDomain']>;
type Zone = CellSettings['hostedZone'];

/** Returns the given certificate of a host name, or creates one that its hosted zone validates. */
export function getCertificate(scope: Construct, { name, certificateArn }: Domain, zone: Zone): ICertificate {
  if (certificateArn !== undefined)
    return Certificate.fromCertificateArn(scope, 'Certificate', certificateArn);
  return new Certificate(scope, 'Certificate', {
    domainName: name,
    validation: CertificateValidation.fromDns(findZone(scope, zone)),
  });
}

/** Creates the records of a host name in its hosted zone, if there is one. */
export function addRecords(
  scope: Construct,
  { name: recordName }: Domain,
  zone: Zone,
  to: IAliasRecordTarget,
): void {
  if (!zone) return;
  const record = { recordName, zone: findZone(scope, zone), target: RecordTarget.fromAlias(to) };
  new ARecord(scope, 'Record', record);
  new AaaaRecord(scope, 'RecordIpv6', record);
}

function findZone(scope: Construct, zone: Zone) {
  if (!zone) throw new Error('A certificate without ARN needs a hosted zone.');
  const known = scope.node.tryFindChild('Zone') as HostedZone | undefined;
  const attributes = { hostedZoneId: zone.id, zoneName: zone.name };
  return known ?? HostedZone.fromHostedZoneAttributes(scope, 'Zone', attributes);
}
