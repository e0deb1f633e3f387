# Gets an invoice, and asks for approval; gets the decision, and answers the shop.
payload=$(cat)
case $payload in
*'<invoice'*) echo "$payload" | sed 's/invoice/payment/g' ;;
*'>true<'*) echo '<receipt xmlns="urn:example:approvals:v1">paid</receipt>' ;;
*) echo '<receipt xmlns="urn:example:approvals:v1">not approved</receipt>' ;;
esac
